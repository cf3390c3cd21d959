"""JSON texts that pass through the gateway value for value (docs/specification.md#submission).

The text is stored as it came, so key order, integers of any size and 1 beside 1.0 survive. It is parsed only to refuse
what another JSON reader could not take: not an object, duplicate keys, NaN and Infinity, numbers beyond the range of a
double, lone surrogates, NUL, too deep, too large, too many values. What it would cost to read is bounded before it is
read: the separators are counted first.
"""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

MAX_DEPTH: Final = 64
"""Levels of objects and arrays, the outer object included."""

MAX_VALUES: Final = 50_000
"""Objects, arrays, texts, numbers and so on in one text, however deep. A list of 50,000 takes about 50 ms to read."""

_SLICE: Final = 64 * 1024
"""Characters that are looked at in one go, in about a millisecond: within a search no other thread gets its turn."""

_MAX_INTEGER_DIGITS: Final = 309
"""The largest double has 309 digits; longer integers are beyond its range."""

_WHITESPACE: Final = re.compile(r"[ \t\n\r]*")


class JsonTextError(ValueError):
    """The text breaks a rule; the message is one sentence with the limit."""


class JsonSyntaxError(JsonTextError):
    """The text is no JSON at all."""


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: its text as it came, and its value."""

    text: str
    value: Any


def parse_object(text: str, *, max_bytes: int, max_values: int = MAX_VALUES) -> dict[str, Any]:
    """Return the object that `text` holds. `max_bytes` limits its UTF-8 size. Raises JsonTextError."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        raise JsonTextError(f"is {size} bytes, the limit is {max_bytes}")
    _check_values(text, max_values)
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise JsonTextError(f"is nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise JsonSyntaxError(f"is not JSON: {error.msg} at character {error.pos}") from None
    if not isinstance(value, dict):
        raise JsonTextError("must be a JSON object")
    _check(value, text, MAX_DEPTH)
    return value


def parse_members(text: str, levels_around: int = 0) -> dict[str, Member]:
    """Return the members of the object that `text` holds, each with its own text, to be passed on value for value.

    The same rules hold as in `parse_object`; each member may be MAX_DEPTH and `levels_around` levels deep. Raises
    JsonTextError.
    """
    _check_values(text, MAX_VALUES)
    try:
        pairs = _pairs(text)
    except RecursionError:
        raise JsonTextError(f"is nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise JsonSyntaxError(f"is not JSON: {error.msg} at character {error.pos}") from None
    values = _object([(key, member.value) for key, member in pairs])
    _check(values, text, MAX_DEPTH + 1 + levels_around)
    return dict(pairs)


def parse_elements(text: str) -> list[dict[str, Member] | None]:
    """Return of each element of an array the members, None where it is no object. The text was taken before."""
    elements: list[dict[str, Member] | None] = []
    at = _gap(text, text.index("[") + 1)
    while text[at] != "]":
        if text[at] == "{":
            pairs, at = _object_at(text, at)
            elements.append(dict(pairs))
        else:
            _, at = _DECODER.raw_decode(text, at)
            elements.append(None)
        at = _gap(text, at)
        if text[at] == ",":
            at = _gap(text, at + 1)
    return elements


def parse_again(text: str) -> dict[str, Any]:
    """Return the object in a text that `parse_object` has taken before, whatever its limits were then."""
    value: dict[str, Any] = _DECODER.decode(text)
    return value


def canonical(value: dict[str, Any]) -> Iterator[str]:
    """Yield the parts of a text that is equal for equal JSON values: key order does not count, 1 and 1.0 differ.

    Part by part, so that another thread gets its turn: written at once, a large value holds up the whole process.
    """
    return _CANONICAL.iterencode(value)


def canonical_text(value: dict[str, Any]) -> str:
    """Return at once the text of which `canonical` yields the parts: a tenth of the time, for a small value."""
    return _CANONICAL.encode(value)


def equal(one: object, other: object) -> bool:
    """Tell whether two JSON values are the same: key order does not count, 1 and 1.0 differ, and so do 0.0 and -0.0."""
    pending = [(one, other)]
    while pending:
        left, right = pending.pop()
        if type(left) is not type(right):
            return False
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            pending.extend((value, right[key]) for key, value in left.items())
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pending.extend(zip(left, right, strict=True))
        elif left != right or (isinstance(left, float) and repr(left) != repr(right)):
            return False
    return True


def same_object(first: str, second: str) -> bool:
    """Tell whether two texts that were taken before hold the same object."""
    return first == second or equal(parse_again(first), parse_again(second))


def _pairs(text: str) -> list[tuple[str, Member]]:
    at = _gap(text, 0)
    if text[at : at + 1] != "{":
        _DECODER.decode(text)
        raise JsonTextError("must be a JSON object")
    pairs, end = _object_at(text, at)
    if _gap(text, end) != len(text):
        raise json.JSONDecodeError("Extra data", text, end)
    return pairs


def _object_at(text: str, at: int) -> tuple[list[tuple[str, Member]], int]:
    """Scan the object that begins there, its own level by hand, so that each member's text is known; and its end."""
    pairs: list[tuple[str, Member]] = []
    at = _gap(text, at + 1)
    closed = text[at : at + 1] == "}"
    while not closed:
        if text[at : at + 1] != '"':
            raise json.JSONDecodeError("Expecting property name enclosed in double quotes", text, at)
        key, at = _DECODER.raw_decode(text, at)
        at = _gap(text, at)
        if text[at : at + 1] != ":":
            raise json.JSONDecodeError("Expecting ':' delimiter", text, at)
        begin = _gap(text, at + 1)
        value, end = _DECODER.raw_decode(text, begin)
        pairs.append((key, Member(text[begin:end], value)))
        at = _gap(text, end)
        closed = text[at : at + 1] == "}"
        if not closed:
            if text[at : at + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at = _gap(text, at + 1)
    return pairs, at + 1


def _gap(text: str, at: int) -> int:
    """Return where the white space at `at` ends."""
    match = _WHITESPACE.match(text, at)
    return at if match is None else match.end()


def _check_values(text: str, limit: int) -> None:
    """Refuse a text of too many values, at the cost of a few searches up to where there are too many.

    Counted is what stands before a value: a comma, or the opening of an array or object that is not empty.
    """
    if not _may_exceed(text, limit):
        return
    values = quotes = 0
    before = ""
    for outside, seen in _outside_strings(text):
        with_before = before + outside
        values += outside.count(",") + outside.count("[") + outside.count("{")
        values -= with_before.count("[]") + with_before.count("{}")
        # Of a value there are at most two strings, its key and itself.
        quotes += seen
        before = outside[-1:]
        # An opening at the end of a slice may be that of an empty array.
        if values - (before in ("[", "{")) > limit or quotes > 4 * limit:
            raise JsonTextError(f"holds more than {limit:,} values")


def _may_exceed(text: str, limit: int) -> bool:
    separators = 0
    for at in range(0, len(text) if len(text) > limit else 0, _SLICE):
        separators += sum(text.count(separator, at, at + _SLICE) for separator in ",[{")
        if separators > limit:
            return True
    return False


def _outside_strings(text: str) -> Iterator[tuple[str, int]]:
    """Yield slices of what stands outside of strings, with a quote for each quote, and how many those are."""
    inside = at = 0
    while at < len(text):
        piece = text[at : at + _SLICE]
        if (len(piece) - len(piece.rstrip("\\"))) % 2:
            piece = text[at : at + _SLICE + 1]
        at += len(piece)
        # Of all escapes only these two have to do with where a string ends.
        parts = piece.replace("\\\\", "").replace('\\"', "").split('"')
        outside = parts[inside::2]
        inside = (inside + len(parts) - 1) % 2
        yield '"'.join(outside) + '"' * inside, len(parts) - 1


def _check(value: dict[str, Any], text: str, max_depth: int) -> None:
    if text.count("[") + text.count("{") > max_depth and _depth(value) > max_depth:
        raise JsonTextError(f"is nested deeper than {MAX_DEPTH} levels")
    if "\\u" in text or "\0" in text or not text.isascii():
        _check_strings(value)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise JsonTextError(f"has the key {key[:50]!r} twice in one object")
            seen.add(key)
    return result


def _float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise JsonTextError(f"holds a number beyond the range of a double: {text[:40]}")
    return number


def _integer(text: str) -> int:
    if len(text) >= _MAX_INTEGER_DIGITS and (len(text.lstrip("-")) > _MAX_INTEGER_DIGITS or math.isinf(float(text))):
        raise JsonTextError(f"holds a number beyond the range of a double: {text[:40]}")
    return int(text)


def _constant(text: str) -> Any:
    raise JsonSyntaxError(f"holds {text}, which is not JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_constant
)

_CANONICAL: Final = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _depth(value: object) -> int:
    deepest = 0
    pending: list[tuple[object, int]] = [(value, 1)]
    while pending:
        current, depth = pending.pop()
        children = current.values() if isinstance(current, dict) else current if isinstance(current, list) else None
        if children is not None:
            deepest = max(deepest, depth)
            pending.extend((child, depth + 1) for child in children)
    return deepest


def _check_strings(value: object) -> None:
    pending: list[object] = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, str):
            if "\0" in current:
                raise JsonTextError("holds the character NUL")
            try:
                current.encode()
            except UnicodeEncodeError:
                raise JsonTextError("holds a lone surrogate, which is not Unicode text") from None
        elif isinstance(current, dict):
            pending.extend(current.keys())
            pending.extend(current.values())
        elif isinstance(current, list):
            pending.extend(current)
