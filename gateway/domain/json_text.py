"""JSON texts that pass through the gateway value for value (specification, section 3, submit).

The text is stored as it came, so key order, integers of any size and 1 beside 1.0 survive. It is parsed only to refuse
what another JSON reader could not take: not an object, duplicate keys, NaN and Infinity, numbers beyond the range of a
double, lone surrogates, NUL, too deep, too large.
"""

import json
import math
from typing import Any, Final

MAX_DEPTH: Final = 64
"""Levels of objects and arrays, the outer object included."""

_MAX_INTEGER_DIGITS: Final = 309
"""The largest double has 309 digits; longer integers are beyond its range."""


class JsonTextError(ValueError):
    """The text breaks a rule; the message is one sentence with the limit."""


def parse_object(text: str, *, max_bytes: int) -> dict[str, Any]:
    """Return the object that `text` holds. `max_bytes` limits its UTF-8 size. Raises JsonTextError."""
    size = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    if size > max_bytes:
        raise JsonTextError(f"is {size} bytes, the limit is {max_bytes}")
    try:
        value = _DECODER.decode(text)
    except RecursionError:
        raise JsonTextError(f"is nested deeper than {MAX_DEPTH} levels") from None
    except json.JSONDecodeError as error:
        raise JsonTextError(f"is not JSON: {error.msg} at character {error.pos}") from None
    if not isinstance(value, dict):
        raise JsonTextError("must be a JSON object")
    if text.count("[") + text.count("{") > MAX_DEPTH and _depth(value) > MAX_DEPTH:
        raise JsonTextError(f"is nested deeper than {MAX_DEPTH} levels")
    if "\\u" in text or "\0" in text or not text.isascii():
        _check_strings(value)
    return value


def canonical(value: dict[str, Any]) -> str:
    """Return a text that is equal for equal JSON values: key order does not count, 1 and 1.0 differ."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


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
    if len(text.lstrip("-")) > _MAX_INTEGER_DIGITS or math.isinf(float(text)):
        raise JsonTextError(f"holds a number beyond the range of a double: {text[:40]}")
    return int(text)


def _constant(text: str) -> Any:
    raise JsonTextError(f"holds {text}, which is not JSON")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_float, parse_int=_integer, parse_constant=_constant
)


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
