"""Properties of an intent: what the gateway accepts survives value for value, and within every limit; so at the worker.

An input is a byte that says how to read the rest: as a text, or as decisions that build one.
"""

import json
import math
from typing import Any

from gateway.domain.fields import json_object
from gateway.domain.json_text import MAX_DEPTH, canonical, equal, parse_members, parse_object
from gateway.domain.refusals import RefusedError
from tests.fuzz.choices import Choices
from worker.orders.intent import (
    MAX_CHOICES,
    MAX_ITEMS,
    MAX_QUANTITY,
    MAX_TEXT,
    MAX_URL,
    MAX_YEN,
    MalformedIntentError,
    parse_intent,
)

MAX_BYTES = 4_096

KEYS = (
    "item_url",
    "items",
    "quantity",
    "variant_id",
    "choice",
    "options",
    "max_total_yen",
    "",
    "a",
    "\u00e9",
    "\\u0061",
    "item_url ",
)
TEXTS = (
    '"http://shop.example/item/a/"', '""', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\u0000"', '"\x00"', '"\x7f"', '"\\"',
    '" "', '"http://[::1"', '"http://shop.example:0/"', '"http:\\\\\\\\shop"',
    '"\u202e\u2028"', '"https://x/' + "a" * 2_000 + '"',
)  # fmt: skip
NUMBERS = (
    "1", "0", "-0", "-1", "1.0", "1e0", "1E400", "-1e-400", "9999", "10000", "1e309", "0.1", "01", "+1", ".5", "1.",
    "1000000000000", "1000000000001", "9" * 309, "9" * 310, "1" + "0" * 308, "-" + "9" * 308, "1_0",
    "NaN", "Infinity", "-Infinity",
)  # fmt: skip
OTHERS = ("true", "false", "null", "undefined", "tru", "")
GAPS = ("", " ", "\n", "\t", "\x0b", "\u00a0", "\ufeff", "//", "\r")


def intent_from(data: bytes) -> str | None:
    """The text to be tried; None where the bytes are no text at all."""
    how, rest = data[:1], data[1:]
    if how < b"\x80":
        try:
            return rest.decode()
        except UnicodeDecodeError:
            return None
    return _value(Choices(rest), 0)


def _value(choices: Choices, depth: int) -> str:
    kind = 0 if depth == 0 else choices.below(8)
    gap = choices.one_of(GAPS) if choices.below(8) == 7 else ""
    if kind in (0, 1) and depth < 80:
        members = []
        for _ in range(choices.below(8) + (depth == 0)):
            key = json.dumps(choices.one_of(KEYS)).replace("\\\\", "\\")
            members.append(f"{key}:{gap}{_value(choices, depth + 1)}")
        return "{" + ",".join(members) + "}" + gap
    if kind == 2 and depth < 80:
        return "[" + ",".join(_value(choices, depth + 1) for _ in range(choices.below(8))) + "]"
    if kind == 3:
        levels = choices.below(160)
        return "[" * levels + gap + "]" * levels
    return choices.one_of((TEXTS, NUMBERS, OTHERS)[choices.below(3)]) + gap


def check(data: bytes) -> str:
    """Raises AssertionError where a property does not hold; returns what became of the input, for the figures."""
    text = intent_from(data)
    if text is None:
        return "no text"
    accepted = _at_the_gateway(text)
    read = _at_the_worker(text)
    if not accepted:
        return "refused"
    return "bought" if read else "accepted"


def _at_the_gateway(text: str) -> bool:
    valid = _is_valid(text)
    try:
        kept = json_object("intent_json", text, max_bytes=MAX_BYTES)
    except RefusedError:
        assert not valid, "a valid intent is refused"
        return False
    assert valid, "an intent that another reader could not take is accepted"
    assert kept == text, "the text is kept as it came"
    value = json.loads(text)
    assert _same(parse_object(text, max_bytes=MAX_BYTES), value)
    members = parse_members(text)
    assert {name: member.value for name, member in members.items()} == value
    assert all(_same(json.loads(member.text), value[name]) for name, member in members.items())
    one_form = "".join(canonical(value))
    assert "".join(canonical(json.loads(one_form))) == one_form
    assert _same(json.loads(one_form), value), "equal texts mean equal values"
    assert equal(json.loads(one_form), value)
    other = {name: 1.0 if part == 1 else part for name, part in value.items()}
    assert equal(other, value) == _same(other, value)
    return True


def _at_the_worker(text: str) -> bool:
    try:
        intent = parse_intent(text)
    except MalformedIntentError:
        return False
    value = json.loads(text)
    given = value.get("items", [value])
    assert 1 <= len(intent.items) == len(given) <= MAX_ITEMS
    for item, thing in zip(intent.items, given, strict=True):
        asked = {"item_url": thing} if isinstance(thing, str) else thing
        choice = asked.get("choice") or []
        assert item.item_url == asked["item_url"]
        assert len(item.item_url) <= MAX_URL
        assert item.quantity == asked.get("quantity", 1)
        assert type(item.quantity) is int
        assert 1 <= item.quantity <= MAX_QUANTITY
        assert item.variant_id == asked.get("variant_id")
        assert list(item.choice) == ([choice] if isinstance(choice, str) else choice)
        assert len(item.choice) <= MAX_CHOICES
        assert all(len(part) <= MAX_TEXT for part in (item.variant_id or "", *item.choice))
    assert intent.max_total_yen == value.get("max_total_yen")
    assert intent.max_total_yen is None or 1 <= intent.max_total_yen <= MAX_YEN
    return True


def _same(one: Any, other: Any) -> bool:
    """Equal, and of the same types all through: 1 is not 1.0, and not true."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(_same(a, b) for a, b in zip(one, other, strict=True))
    return bool(one == other)


def _is_valid(text: str) -> bool:
    """The rules of docs/intent.md, written a second time: slow and plain."""
    twice: list[str] = []

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        twice.extend(key for key, _ in found if sum(other == key for other, _ in found) > 1)
        return dict(found)

    def constant(name: str) -> None:
        twice.append(name)

    try:
        size = len(text.encode())
        value = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
    except (ValueError, RecursionError):
        return False
    return size <= MAX_BYTES and not twice and isinstance(value, dict) and _fits(value, 1)


def _fits(value: Any, level: int) -> bool:
    if isinstance(value, dict):
        return level <= MAX_DEPTH and all(_fits(key, 0) and _fits(part, level + 1) for key, part in value.items())
    if isinstance(value, list):
        return level <= MAX_DEPTH and all(_fits(part, level + 1) for part in value)
    if isinstance(value, str):
        return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)
    try:
        return math.isfinite(float(value or 0))
    except OverflowError:
        return False
