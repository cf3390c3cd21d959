"""Page tokens: where the next page begins, and for which filters.

What reads one raises RefusedError INVALID_FIELD.
"""

import base64
import binascii
import json
from typing import Final

from gateway.domain.refusals import invalid
from gateway.store.port import ABOVE_ALL_ROWS

_LONGEST_PAGE_TOKEN: Final = 16 * 1024


def make_page_token(position: int | tuple[int, ...] | None, filters: list[str]) -> str:
    """Write a page token; no further page is the empty text."""
    if position is None:
        return ""
    parts = position if isinstance(position, tuple) else (position,)
    return base64.urlsafe_b64encode(json.dumps([*parts, *filters], separators=(",", ":")).encode()).decode("ascii")


def page_token(text: str, filters: list[str]) -> int | None:
    """Read a page token made for the same filters; empty is the first page."""
    position = page_position(text, filters, 1)
    return None if position is None else position[0]


def page_position(text: str, filters: list[str], parts: int) -> tuple[int, ...] | None:
    """Read a page token whose position has several parts."""
    if not text:
        return None
    if len(text) > _LONGEST_PAGE_TOKEN:
        raise invalid("page_token", f"is longer than {_LONGEST_PAGE_TOKEN:,} characters")
    try:
        told = json.loads(base64.urlsafe_b64decode(text.encode("ascii")))
        position, made_for = (tuple(told[:parts]), told[parts:]) if isinstance(told, list) else ((), [])
    except (ValueError, binascii.Error, RecursionError, TypeError):
        position, made_for = (), []
    whole = all(
        isinstance(part, int) and not isinstance(part, bool) and 0 < part <= ABOVE_ALL_ROWS for part in position
    )
    if len(position) != parts or not whole or made_for != filters:
        raise invalid("page_token", "must be next_page_token of a page with the same filters; start without one")
    return position
