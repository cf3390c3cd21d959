"""What every resource is written with: times, durations, page tokens.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

import base64
import binascii
import json
from datetime import UTC, datetime, timedelta
from typing import Final

from google.protobuf import duration_pb2, timestamp_pb2

from gateway.domain.instant import parse_utc
from gateway.domain.refusals import invalid
from gateway.store.port import ABOVE_ALL_ROWS

_LONGEST_PAGE_TOKEN: Final = 16 * 1024
_MOST_SECONDS: Final = 315_576_000_000
_MOST_NANOS: Final = 999_999_999


def timestamp(utc: str | None) -> timestamp_pb2.Timestamp | None:
    """Write a stored time; None stays absent."""
    if utc is None:
        return None
    message = timestamp_pb2.Timestamp()
    message.FromDatetime(parse_utc(utc))
    return message


def datetime_of(field: str, message: timestamp_pb2.Timestamp) -> datetime:
    """Read a time of the years 1 to 9999."""
    try:
        return message.ToDatetime(UTC)
    except (ValueError, OverflowError):
        raise invalid(field, "must be a time between the years 1 and 9999") from None


def duration(value: timedelta) -> duration_pb2.Duration:
    """Write a duration."""
    message = duration_pb2.Duration()
    message.FromTimedelta(value)
    return message


def timedelta_of(field: str, message: duration_pb2.Duration) -> timedelta:
    """Read a duration."""
    seconds, nanos = message.seconds, message.nanos
    if abs(seconds) > _MOST_SECONDS or abs(nanos) > _MOST_NANOS or seconds * nanos < 0:
        raise invalid(field, "is no valid duration")
    # Rounded down: the smallest negative one stays negative, and a look at the site is not made later than it was.
    return timedelta(seconds=seconds, microseconds=nanos // 1_000)


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
