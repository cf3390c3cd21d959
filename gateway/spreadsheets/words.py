"""Values of the contract as words."""

from datetime import UTC
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp


def name_of(enum: Any, number: int) -> str:
    """Return an enum's value as a word: TASK_STATUS_STALE is `stale`; unspecified is empty."""
    values = enum.DESCRIPTOR.values_by_number
    if not number:
        return ""
    if number not in values:
        return str(number)
    prefix = values[0].name.removesuffix("UNSPECIFIED")
    return str(values[number].name).removeprefix(prefix).lower()


def exact(message: Message, field: str) -> str:
    """Return the time in a field as RFC 3339 in UTC, to the microsecond; empty where it is absent."""
    if not message.HasField(field):
        return ""
    value: Timestamp = getattr(message, field)
    return f"{value.ToDatetime(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
