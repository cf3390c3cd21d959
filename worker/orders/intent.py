"""What an intent means (docs/intent.md). The gateway passes it through; only the worker reads it.

Either `items`, a list of objects or bare item URLs, or the older single-item fields on the intent itself; both at once
are malformed, as is anything unclear: buying the wrong thing cannot be undone. Unknown fields are ignored.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn
from urllib.parse import urlsplit

from worker.journal.records import LeasedTask, Order
from worker.sites.port import Item

MAX_ITEMS = 50
MAX_QUANTITY = 9_999
MAX_CHOICES = 50
MAX_TEXT = 1_000
MAX_URL = 2_000
MAX_YEN = 10**12

_ITEM_FIELDS = ("item_url", "quantity", "variant_id", "choice")


class MalformedIntentError(Exception):
    """The intent does not say clearly what to buy. The message names the field."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What to buy: at least one item, in the order given; `options` are the site's own; the limit is in yen."""

    items: tuple[Item, ...]
    options: Mapping[str, Any]
    max_total_yen: int | None


def parse_intent(text: str) -> Intent:
    """Read an intent from its JSON text. Raises MalformedIntentError."""
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise MalformedIntentError(f"intent: not valid JSON: {error}") from error
    if not isinstance(value, dict):
        _malformed("intent", "must be a JSON object")
    return Intent(items=_items(value), options=_options(value), max_total_yen=_limit(value))


def other_than_known(known: Order, lease: LeasedTask) -> str | None:
    """Return how a lease contradicts what the journal holds of its task; None where all is the same.

    An intent is the same if it is the same JSON value, whatever the order of its keys; 1 and 1.0 are two values.
    """
    if known.site != lease.site:
        return f"this journal holds the task for the site {known.site}, the lease names {lease.site}"
    if known.account != lease.account:
        of = f"account {known.account}" if known.account else "the site's only account"
        return f"this journal holds the task for {of}, the lease names {lease.account or 'none'}"
    if known.intent_json != lease.intent_json and _canonical(known.intent_json) != _canonical(lease.intent_json):
        return "this journal holds the task with another intent than the lease brings"
    return None


def _canonical(text: str) -> str:
    try:
        return json.dumps(json.loads(text), sort_keys=True)
    except (ValueError, RecursionError):
        return text


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


def _malformed(field: str, what: str) -> NoReturn:
    raise MalformedIntentError(f"{field}: {what}")


def _items(intent: dict[str, Any]) -> tuple[Item, ...]:
    single = [field for field in _ITEM_FIELDS if field in intent]
    if "items" not in intent:
        if not single:
            _malformed("items", "missing; name at least one item")
        return (_item(intent, ""),)
    if single:
        _malformed(single[0], "must not stand on the intent beside items")
    items = intent["items"]
    if not isinstance(items, list) or not items:
        _malformed("items", "must be a list with at least one item")
    if len(items) > MAX_ITEMS:
        _malformed("items", f"must not hold more than {MAX_ITEMS} items")
    return tuple(_listed_item(item, f"items[{index}]") for index, item in enumerate(items))


def _listed_item(value: Any, path: str) -> Item:
    if isinstance(value, str):
        return Item(item_url=_url(value, path))
    if not isinstance(value, dict):
        _malformed(path, "must be an object or an item URL")
    return _item(value, f"{path}.")


def _item(fields: dict[str, Any], prefix: str) -> Item:
    if "item_url" not in fields:
        _malformed(f"{prefix}item_url", "missing")
    return Item(
        item_url=_url(fields["item_url"], f"{prefix}item_url"),
        quantity=_quantity(fields.get("quantity", 1), f"{prefix}quantity"),
        variant_id=_variant(fields.get("variant_id"), f"{prefix}variant_id"),
        choice=_choice(fields.get("choice"), f"{prefix}choice"),
    )


def _text(value: Any, field: str, longest: int = MAX_TEXT) -> str:
    if not isinstance(value, str) or not value.strip():
        _malformed(field, "must be a text that is not empty")
    if len(value) > longest:
        _malformed(field, f"must not be longer than {longest} characters")
    if any(ord(character) < ord(" ") or "\ud800" <= character <= "\udfff" for character in value):
        _malformed(field, "must not contain control characters or lone surrogates")
    return value


def _url(value: Any, field: str) -> str:
    text = _text(value, field, MAX_URL)
    try:
        parts = urlsplit(text)
        named = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise MalformedIntentError(f"{field}: not a URL: {error}") from error
    if parts.scheme not in ("http", "https") or not named or text != text.strip() or " " in text:
        _malformed(field, "must be an absolute http or https URL")
    return text


def _quantity(value: Any, field: str) -> int:
    if type(value) is not int or not 1 <= value <= MAX_QUANTITY:  # true is a bool, which is a kind of int
        _malformed(field, f"must be an integer from 1 to {MAX_QUANTITY}")
    return value


def _variant(value: Any, field: str) -> str | None:
    return None if value is None else _text(value, field)


def _choice(value: Any, field: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (_text(value, field),)
    if not isinstance(value, list) or len(value) > MAX_CHOICES:
        _malformed(field, f"must be a text or a list of at most {MAX_CHOICES} texts")
    return tuple(_text(choice, f"{field}[{index}]") for index, choice in enumerate(value))


def _options(intent: dict[str, Any]) -> dict[str, Any]:
    options = intent.get("options")
    if options is None:
        return {}
    if not isinstance(options, dict):
        _malformed("options", "must be an object")
    return options


def _limit(intent: dict[str, Any]) -> int | None:
    limit = intent.get("max_total_yen")
    if limit is None:
        return None
    if type(limit) is not int or not 1 <= limit <= MAX_YEN:
        _malformed("max_total_yen", f"must be an integer from 1 to {MAX_YEN}")
    return limit
