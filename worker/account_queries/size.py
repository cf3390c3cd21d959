"""A result as text, within the gateway's limits: raw data goes first, and what is too large without it is no result."""

import json
from typing import Any

from worker.account_queries.kinds import Result

MAX_DEPTH = 64
RAW_FIELDS = ("raw_pages", "raw")


class ResultTooLargeError(Exception):
    """The result is over the limit even without raw data."""


def to_text(result: Result, *, max_bytes: int) -> str:
    """Return the result as compact JSON of at most `max_bytes` UTF-8 bytes, with `raw_omitted` if raw data had to go.

    Raw data also goes if it holds what the contract's JSON does not take: a lone surrogate, NUL, NaN, too many levels.
    """
    text = _dump(result)
    if text is not None and len(text.encode()) <= max_bytes:
        return text
    trimmed = {name: value for name, value in result.items() if name not in RAW_FIELDS} | {"raw_omitted": True}
    text = _dump(trimmed)
    if text is None:
        raise ResultTooLargeError("the site's data cannot be written as JSON")
    if (size := len(text.encode())) > max_bytes:
        raise ResultTooLargeError(
            f"the result is {size:,} bytes without raw data, the limit is {max_bytes:,}; ask for fewer pages"
        )
    return text


def _dump(value: Result) -> str | None:
    """Compact JSON; None where the value has no text that the contract takes."""
    try:
        if _depth(value) > MAX_DEPTH:
            return None
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (ValueError, RecursionError):
        return None
    return None if "\\u0000" in text else text


def _depth(value: Any) -> int:
    deepest = 0
    pending = [(value, 1)]
    while pending:
        current, depth = pending.pop()
        children = current.values() if isinstance(current, dict) else current if isinstance(current, list) else None
        if children is not None:
            deepest = max(deepest, depth)
            pending.extend((child, depth + 1) for child in children)
    return deepest
