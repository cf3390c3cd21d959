"""The contract's messages as they travel over Connect, binary and as JSON.

What protobuf's own reader of JSON takes in good faith is looked at first: it takes `1.5` for an enum's 1, `1_0` for 10,
the last of two names of one field, and any number of values.
"""

import re
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from connectrpc.codec import Codec
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message
from ordergateway.v1 import orders_pb2

from gateway.api.call import check_size
from gateway.api.connect.encoding import Prepared, written
from gateway.api.connect.errors import connect_error
from gateway.api.entries import check_entries
from gateway.domain.json_text import JsonTextError, parse_object
from gateway.domain.json_writing import dump
from gateway.domain.refusals import RefusedError, invalid

M = TypeVar("M", bound=Message)

MAX_VALUES: Final = 1_000
"""Values in one message as JSON. An intent is one of them: a text, in which a JSON object is."""

MAX_VALUES_OF_A_BATCH: Final = 4_000
"""Values in a batch as JSON: 500 orders of five fields each, with some to spare. They take 40 ms to read."""

_WHOLE: Final = re.compile(r"-?[0-9]+", re.ASCII)
_TEXTS: Final[Mapping[str, tuple[re.Pattern[str], str]]] = MappingProxyType(
    {
        "google.protobuf.Duration": (
            re.compile(r"-?[0-9]+(\.[0-9]{1,9})?s", re.ASCII),
            "must be a duration in seconds, such as 1.5s",
        ),
        "google.protobuf.Timestamp": (
            re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})", re.ASCII),
            "must be a time with offset (RFC 3339), such as 2026-07-30T14:59:00Z",
        ),
    }
)
_INTEGERS: Final = frozenset(
    {FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT32}
    | {FieldDescriptor.CPPTYPE_UINT64}
)


_LONG: Final = 1_024
"""Characters from which a text is set as it is; protobuf's reader takes a tenth of a microsecond for each."""


class BinaryCodec(Codec[Message | Prepared, M]):
    """Reads and writes messages."""

    def name(self) -> str:
        """Return the codec's name in content types."""
        return "proto"

    def encode(self, message: Message | Prepared) -> bytes:
        """Write a message."""
        return written(message, lambda told: told.SerializeToString())

    def decode(self, data: bytes | bytearray, message_class: type[M]) -> M:
        """Read a message. Raises ConnectError RESOURCE_EXHAUSTED, or DecodeError."""
        _check_size(message_class, data)
        _check_entries(message_class, data)
        return message_class.FromString(bytes(data))


class StrictJsonCodec(Codec[Message | Prepared, M]):
    """Reads and writes messages. `max_bytes` bounds a text; connectrpc has refused larger bodies before."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes

    def name(self) -> str:
        """Return the codec's name in content types."""
        return "json"

    def encode(self, message: Message | Prepared) -> bytes:
        """Write a message."""
        return written(message, lambda told: dump(MessageToDict(told)).encode())

    def decode(self, data: bytes | bytearray, message_class: type[M]) -> M:
        """Read a message. Raises ConnectError RESOURCE_EXHAUSTED, or INVALID_ARGUMENT with the field."""
        _check_size(message_class, data)
        message = message_class()
        most = MAX_VALUES_OF_A_BATCH if message_class is orders_pb2.SubmitOrdersRequest else MAX_VALUES
        try:
            value = parse_object(data.decode(), max_bytes=self._max_bytes, max_values=most)
            _check_message(value, cast(Descriptor, message_class.DESCRIPTOR), "")
            texts = _take_long_texts(value, cast(Descriptor, message_class.DESCRIPTOR))
            ParseDict(value, message, ignore_unknown_fields=True)
            for name, text in texts.items():
                setattr(message, name, text)
        except RefusedError as error:
            raise connect_error(error.refusal) from None
        except (UnicodeDecodeError, JsonTextError, ParseError) as error:
            told = "is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
            raise connect_error(invalid("request", told).refusal) from None
        return message


def _check_size(message_class: type[Message], data: bytes | bytearray) -> None:
    try:
        check_size(message_class, len(data))
    except RefusedError as error:
        raise connect_error(error.refusal) from None


def _check_entries(message_class: type[Message], data: bytes | bytearray) -> None:
    try:
        check_entries(message_class, data)
    except RefusedError as error:
        raise connect_error(error.refusal) from None


def _take_long_texts(value: dict[str, Any], descriptor: Descriptor) -> dict[str, str]:
    """Take long texts out of a message that has been checked; return them by their fields' names."""
    texts = {}
    for name, field in _fields_of(descriptor).items():
        alone = not field.is_repeated and (field.containing_oneof is None or len(field.containing_oneof.fields) == 1)
        text = value.get(name)
        if alone and field.cpp_type == FieldDescriptor.CPPTYPE_STRING and isinstance(text, str) and len(text) > _LONG:
            texts[field.name] = value.pop(name)
    return texts


def _check_message(value: Any, descriptor: Descriptor, path: str) -> None:
    if not isinstance(value, dict):
        return  # protobuf's reader refuses it, and says so well
    fields, seen = _fields_of(descriptor), dict[str, str]()
    for name, each in value.items():
        field = fields.get(name)
        if field is None:
            continue
        if field.name in seen:
            raise invalid(f"{path}{field.name}", f"stands twice, as {seen[field.name]} and as {name}")
        seen[field.name] = name
        for one in each if field.is_repeated and isinstance(each, list) else [each]:
            _check_value(one, field, f"{path}{field.name}")


def _check_value(value: Any, field: FieldDescriptor, path: str) -> None:
    if field.enum_type is not None:
        names = field.enum_type.values_by_name
        number = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not number and not (isinstance(value, str) and value in names):
            raise invalid(path, "must be one of the enum's names, or its number")
    elif field.cpp_type in _INTEGERS:
        if isinstance(value, str) and not _WHOLE.fullmatch(value):
            raise invalid(path, "must be a whole number")
    elif field.message_type is not None:
        form = _TEXTS.get(field.message_type.full_name)
        if form is None:
            _check_message(value, field.message_type, f"{path}.")
        elif isinstance(value, str) and not form[0].fullmatch(value):
            raise invalid(path, form[1])


@cache
def _fields_of(descriptor: Descriptor) -> Mapping[str, FieldDescriptor]:
    """Return the fields of a message by each of their names."""
    return {name: field for field in descriptor.fields for name in (field.name, field.json_name)}
