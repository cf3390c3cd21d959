"""Limits of single fields, the same on every transport (docs/protocol.md#units-and-forms).

Each function returns the value as it is stored, or raises RefusedError with the field and the limit.
"""

import re
from collections.abc import Collection, Mapping
from datetime import date, datetime, timedelta
from ipaddress import IPv6Address
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from common.order_numbers import MAX_ORDER_NUMBER, order_number
from common.target import ONLY_ACCOUNT
from common.tokens import RESERVED
from gateway.domain.addresses import AddressRefusedError, check_address, inet_aton
from gateway.domain.instant import utc_text
from gateway.domain.json_text import JsonTextError, parse_object
from gateway.domain.labels import labels_text
from gateway.domain.refusals import invalid

MAX_PAGE_SIZE: Final = 200
DEFAULT_PAGE_SIZE: Final = 50
MAX_DETAIL_CHARACTERS: Final = 4_000
MAX_REASON_CHARACTERS: Final = 1_000
MAX_REQUESTED_BY_CHARACTERS: Final = 128
MAX_URL_CHARACTERS: Final = 2_000
MAX_EVIDENCE_REF_CHARACTERS: Final = 300
MAX_ERROR_CODE: Final = 99_999
MAX_SITES: Final = 16
MAX_SITE_CHARACTERS: Final = 64
MAX_ACCOUNTS: Final = 64
MAX_LABELS: Final = 16
MAX_LABEL_CHARACTERS: Final = 256
MAX_BATCH: Final = 500
"""Submissions in one call."""
MAX_YEN: Final = 2**53 - 1
"""The largest integer that every JSON reader keeps exact."""

_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_PART_OF_KEY: Final = re.compile(r"[A-Za-z0-9._-]{0,128}", re.ASCII)
_ACCOUNT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_TOKEN_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}", re.ASCII)
_LABEL_KEY: Final = re.compile(r"[A-Za-z0-9._/-]{1,64}", re.ASCII)
_OPAQUE: Final = re.compile(r"[A-Za-z0-9_-]{16,64}", re.ASCII)
_LEASE_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_EVIDENCE_PART: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d{1,9})?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_LABEL: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?"
_URL: Final = re.compile(
    r"https?://(?:[A-Za-z0-9._~!$&'()*+,;=:%-]*@)?"
    rf"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>{_LABEL}(?:\.{_LABEL})*\.?))"
    r"(?::(?P<port>[0-9]{0,5}))?(?:[/?#][!-~]*)?",
    re.ASCII | re.IGNORECASE,
)
_NUMBER_AT_THE_END: Final = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\.?", re.ASCII | re.IGNORECASE)
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_FIRST_DAY: Final = date(1970, 1, 1)
_LAST_DAY: Final = date(2999, 12, 31)
_LAST_PORT: Final = 65_535
_ROUTE_WORDS: Final = frozenset({"lease", "discovery"})


def key(field: str, value: str) -> str:
    """Check a task_id, query_id or worker_id: 1 to 128 of `A-Z a-z 0-9 . _ -`, first a letter or digit."""
    if not value:
        raise invalid(field, "is required")
    if not _KEY.fullmatch(value):
        raise invalid(field, "must be 1 to 128 characters of A-Z a-z 0-9 . _ -, the first a letter or digit")
    return value


def day(field: str, value: str) -> date:
    """Check a day as 2026-11-30, from 1970-01-01 to 2999-12-31."""
    try:
        found = date.fromisoformat(value) if _DAY.fullmatch(value) else None
    except ValueError:
        found = None
    if found is None or not _FIRST_DAY <= found <= _LAST_DAY:
        raise invalid(field, f"must be a day as 2026-11-30, from {_FIRST_DAY} to {_LAST_DAY}")
    return found


def time_zone(field: str, value: str) -> str:
    """Check a time zone by its IANA name."""
    try:
        return ZoneInfo(value).key
    except (ValueError, OSError, ZoneInfoNotFoundError):
        raise invalid(field, "must be a time zone by its IANA name, such as Asia/Tokyo or Europe/Berlin") from None


def new_key(field: str, value: str) -> str:
    """Check a task_id or query_id that may be new: a key that is no word of a route."""
    if key(field, value) in _ROUTE_WORDS:
        raise invalid(field, f"must not be one of the reserved words {', '.join(sorted(_ROUTE_WORDS))}")
    return value


def opaque_id(field: str, value: str) -> str:
    """Check a session_id or journal_id: 16 to 64 of `A-Z a-z 0-9 _ -`."""
    if not _OPAQUE.fullmatch(value):
        raise invalid(field, "must be 16 to 64 characters of A-Z a-z 0-9 _ -")
    return value


def lease_token(field: str, value: str) -> str:
    """Check the form of a lease token. The message never shows the value."""
    if not _LEASE_TOKEN.fullmatch(value):
        raise invalid(field, "must be the 43 characters that the lease brought")
    return value


def site(field: str, value: str, known: Collection[str]) -> str:
    """Check that a site is one of the configured ones."""
    if value not in known:
        raise invalid(field, f"must be one of the configured sites {', '.join(sorted(known))}")
    return value


def sites(field: str, values: Collection[str], known: Collection[str]) -> tuple[str, ...]:
    """Check a worker's list of sites; repeated names count once."""
    if not 1 <= len(values) <= MAX_SITES:
        raise invalid(field, f"must name 1 to {MAX_SITES} sites")
    return tuple(dict.fromkeys(site(field, value, known) for value in values))


def account(field: str, value: str) -> str:
    """Check an account of a site: 1 to 64 of `A-Z a-z 0-9 . _ -`, first a letter or digit; empty: the only one."""
    if value and not _ACCOUNT.fullmatch(value):
        raise invalid(field, "must be 1 to 64 characters of A-Z a-z 0-9 . _ -, the first a letter or digit, or empty")
    return value


def named_account(field: str, value: str) -> str:
    """Check an account that a list is narrowed to, as `account` does; the empty one is refused."""
    if not value:
        raise invalid(field, "must name an account; without it the list is of all")
    return account(field, value)


def accounts(field: str, values: Collection[str]) -> tuple[str, ...]:
    """Check a worker's list of accounts; repeated names count once, none stands for the sites' only accounts."""
    if len(values) > MAX_ACCOUNTS:
        raise invalid(field, f"must name at most {MAX_ACCOUNTS} accounts")
    return tuple(dict.fromkeys(account(field, value) for value in values)) or (ONLY_ACCOUNT,)


def labels(field: str, values: Mapping[str, str]) -> str:
    """Check labels, and return them as a JSON object in the order of their keys: equal for equal labels."""
    if len(values) > MAX_LABELS:
        raise invalid(field, f"must be at most {MAX_LABELS} labels")
    for key, value in values.items():
        if not _LABEL_KEY.fullmatch(key):
            raise invalid(field, "must have keys of 1 to 64 characters of A-Z a-z 0-9 . _ - /")
        if len(value) > MAX_LABEL_CHARACTERS:
            raise invalid(field, f"has {len(value):,} characters under {key}, the limit is {MAX_LABEL_CHARACTERS}")
        if "\0" in value:
            raise invalid(field, f"must not hold the character NUL, as it does under {key}")
    return labels_text(values)


def budget_id(field: str, value: str) -> str:
    """Check a budget's name: 1 to 64 of `A-Z a-z 0-9 . _ -`, first a letter or digit."""
    if not _ACCOUNT.fullmatch(value):
        raise invalid(field, "must be 1 to 64 characters of A-Z a-z 0-9 . _ -, the first a letter or digit")
    return value


def token_name(field: str, value: str) -> str:
    """Check the name of a token, as it is configured; those of the gateway itself and of unnamed tokens are none."""
    if not _TOKEN_NAME.fullmatch(value):
        raise invalid(field, "must be 1 to 32 characters of a-z 0-9 _ -, the first a letter")
    if value in RESERVED:
        raise invalid(field, f"is {value}, which tokens without a name are called: name the token after who uses it")
    return value


def part_of_key(field: str, value: str) -> str:
    """Check a part of a task_id that is searched for: up to 128 of `A-Z a-z 0-9 . _ -`; empty: any."""
    if not _PART_OF_KEY.fullmatch(value):
        raise invalid(field, "must be up to 128 characters of A-Z a-z 0-9 . _ -, as a task_id has them")
    return value


def json_object(field: str, value: str, *, max_bytes: int) -> str:
    """Check a JSON text and return it as it came."""
    parsed_object(field, value, max_bytes=max_bytes)
    return value


def parsed_object(field: str, value: str, *, max_bytes: int) -> dict[str, Any]:
    """Check a JSON text and return the object in it."""
    if not value:
        raise invalid(field, "is required: one JSON object as text")
    try:
        return parse_object(value, max_bytes=max_bytes)
    except JsonTextError as error:
        raise invalid(field, str(error)) from None


def json_size(field: str, value: str, *, max_bytes: int) -> str:
    """Check only the size of a JSON text that has been parsed already, and return it as it came."""
    size = len(value.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        raise invalid(field, f"is {size} bytes, the limit is {max_bytes}")
    return value


def callback_url(field: str, value: str | None) -> str | None:
    """Check a callback address: absolute http or https, at most 2,000 printable ASCII characters, and of use.

    A host that is itself an address is judged here already; a name is judged when it is looked up.
    """
    if value is None:
        return None
    if len(value) > MAX_URL_CHARACTERS:
        raise invalid(field, f"is longer than {MAX_URL_CHARACTERS} characters")
    url = _URL.fullmatch(value)
    if url is None or not 0 < int(url["port"] or 1) <= _LAST_PORT:
        raise invalid(field, "must be an absolute http or https URL in printable ASCII")
    host = url["host"] or url["ipv6"]
    try:
        address = inet_aton(host) if url["ipv6"] is None else IPv6Address(host)
    except ValueError:
        raise invalid(field, f"names the host [{host}], which is no address") from None
    if address is None and _NUMBER_AT_THE_END.fullmatch(host):
        raise invalid(field, f"names the host {host}, which is neither a name nor an address")
    try:
        if address is not None:
            check_address(address)
    except AddressRefusedError as error:
        raise invalid(field, f"can never be called: {error}") from None
    return value


def text(field: str, value: str, *, limit: int, required: bool = False) -> str:
    """Check a text for people: length in characters, no NUL."""
    if required and not value.strip():
        raise invalid(field, f"is required, 1 to {limit:,} characters")
    if len(value) > limit:
        raise invalid(field, f"has {len(value):,} characters, the limit is {limit:,}")
    if "\0" in value:
        raise invalid(field, "must not hold the character NUL")
    return value


def site_order_id(field: str, value: str | None) -> str | None:
    """Check an order number of the site: 1 to 128 printable characters, without the blanks around them."""
    if value is None:
        return None
    number = order_number(value)
    if number is None:
        raise invalid(field, f"must be 1 to {MAX_ORDER_NUMBER} printable characters")
    return number


def evidence_ref(field: str, value: str | None) -> str | None:
    """Check where evidence lies: a relative path of plain names, at most 300 characters. It is never opened here."""
    if value is None:
        return None
    if len(value) > MAX_EVIDENCE_REF_CHARACTERS:
        raise invalid(field, f"is longer than {MAX_EVIDENCE_REF_CHARACTERS} characters")
    if not all(_EVIDENCE_PART.fullmatch(part) for part in value.split("/")):
        raise invalid(field, "must be a relative path of names from A-Z a-z 0-9 . _ -, such as po-1/05-payment")
    return value


def utc_time(field: str, value: str | None) -> str | None:
    """Check a time as RFC 3339 writes it, any offset, and return it as UTC text. A time without offset is refused."""
    if value is None:
        return None
    wrong = invalid(field, "must be a time with offset (RFC 3339), such as 2026-07-30T14:59:00Z")
    if not _RFC3339.fullmatch(value):
        raise wrong
    try:
        return utc_text(datetime.fromisoformat(value.upper()))
    except (ValueError, OverflowError):
        raise wrong from None


def times(not_before: str | None, not_after: str | None) -> tuple[str | None, str | None]:
    """Check when an order may be handed out, and until when it may be permitted: UTC texts."""
    if not_before is not None and not_after is not None and not_after < not_before:
        raise invalid("not_after", "must not be before not_before")
    return not_before, not_after


def integer(field: str, value: int | None, *, low: int, high: int) -> int | None:
    """Check an optional whole number, limits included."""
    return None if value is None else whole_number(field, value, low=low, high=high)


def whole_number(field: str, value: int, *, low: int, high: int) -> int:
    """Check a whole number, limits included."""
    if not low <= value <= high:
        raise invalid(field, f"must be a whole number from {low:,} to {high:,}")
    return value


def cap(field: str, value: int | None) -> int | None:
    """Check the most that an order may cost, in yen, at least 1."""
    return integer(field, value, low=1, high=MAX_YEN)


def printable(field: str, value: str, *, limit: int, required: bool = False) -> str:
    """Check a text of one line in printable characters, for example an address."""
    if text(field, value, limit=limit, required=required) and not value.isprintable():
        raise invalid(field, "must be of printable characters")
    return value


def wait(field: str, value: timedelta | None, *, longest: timedelta, default: timedelta) -> timedelta:
    """Check how long to wait: absent gives `default`, above `longest` it is clamped, negative is refused."""
    if value is None:
        return min(default, longest)
    if value < timedelta(0):
        raise invalid(field, "must not be negative")
    return min(value, longest)


def batch_size(field: str, count: int) -> int:
    """Check how many entries a batch holds: 1 to 500."""
    if not 1 <= count <= MAX_BATCH:
        raise invalid(field, f"must hold 1 to {MAX_BATCH} of them in one request; send the others apart")
    return count


def page_size(field: str, value: int) -> int:
    """Check the size of a page: 1 to 200, 0 gives 50."""
    if not 0 <= value <= MAX_PAGE_SIZE:
        raise invalid(field, f"must be a whole number from 1 to {MAX_PAGE_SIZE}, or 0 for {DEFAULT_PAGE_SIZE}")
    return value or DEFAULT_PAGE_SIZE
