"""How many entries a batch may bring, counted before it is read: as a value an empty one of two bytes takes a hundred.

The wire format is protobuf's: a tag, then a varint, eight or four bytes, or a length and so many bytes.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from google.protobuf.message import Message
from ordergateway.v1 import orders_pb2

from gateway.domain import fields
from gateway.domain.refusals import invalid

_MAX_FIELDS: Final = 64
"""Fields of one entry, each value of a repeated one counted; none has so many within its limits."""

_BATCHES: Final[Mapping[type[Message], str]] = MappingProxyType({orders_pb2.SubmitOrdersRequest: "orders"})
"""Requests that are a list of entries, and the field that holds it."""

_WIDTHS: Final[Mapping[int, int]] = MappingProxyType({1: 8, 5: 4, 3: 0, 4: 0})
"""Bytes behind a tag by its wire type; the marks of a group have none, and what stands between them is counted too."""


def check_entries(message_type: type[Message], data: bytes | bytearray) -> None:
    """Refuse a batch of too many entries, or an entry of too many fields. Raises RefusedError INVALID_FIELD."""
    name = _BATCHES.get(message_type)
    if name is None:
        return
    for index, (begin, end) in enumerate(_fields(data, 0, len(data))):
        if index >= fields.MAX_BATCH:
            fields.batch_size(name, index + 1)
        for count, _ in enumerate(_fields(data, begin, end), 1):
            if count > _MAX_FIELDS:
                raise invalid(f"{name}[{index}]", f"has more than {_MAX_FIELDS} fields")


def _fields(data: bytes | bytearray, at: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where each field's bytes stand; what has none inside is empty. Ends where the bytes are no message."""
    try:
        while at < end:
            tag, at = _varint(data, at)
            wire_type = tag & 7
            if wire_type == 0:
                _, at = _varint(data, at)
                yield at, at
            elif wire_type == 2:  # noqa: PLR2004 - protobuf's number of what has a length
                length, begin = _varint(data, at)
                at = begin + length
                yield begin, min(at, end)
            else:
                at += _WIDTHS[wire_type]
                yield at, at
    except (IndexError, KeyError):
        return  # protobuf's own reader refuses it


def _varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    byte = data[at]
    if byte < 0x80:  # noqa: PLR2004 - the bit that says that more bytes follow
        return byte, at + 1
    value = shift = 0
    while byte >= 0x80:  # noqa: PLR2004 - as above
        value |= (byte & 0x7F) << shift
        shift, at = shift + 7, at + 1
        byte = data[at]
    return value | byte << shift, at + 1
