"""Times and durations, as every resource is written with.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from google.protobuf import duration_pb2, timestamp_pb2

from gateway.domain.instant import parse_utc
from gateway.domain.refusals import invalid

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
