"""The ErrorDetail of a failed call.

gRPC wraps it in a `google.rpc.Status`, whose package nothing else here needs: the two fields that matter are described
here, in a pool of their own, so that they stand in nobody's way.
"""

from typing import Any, Final, Protocol

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

from ordergateway.v1 import errors_pb2

_KEY: Final = "grpc-status-details-bin"
_NAME: Final = "ordergateway.v1.ErrorDetail"
_Field: Final = descriptor_pb2.FieldDescriptorProto


class Failure(Protocol):
    """What the failed calls of gRPC's two kinds of channels have in common."""

    def code(self) -> grpc.StatusCode:
        """Return the status."""

    def details(self) -> str | None:
        """Return the words beside it."""

    def trailing_metadata(self) -> Any:
        """Return the pairs that came with it; None where nothing came."""


def error_detail(failure: Failure) -> errors_pb2.ErrorDetail | None:
    """Return the gateway's own word on why a call failed; None: no gateway has answered it, whatever the code says."""
    for key, value in failure.trailing_metadata() or ():
        if key == _KEY:
            return _unpacked(value)
    return None


def _unpacked(data: bytes) -> errors_pb2.ErrorDetail | None:
    try:
        for each in _STATUS.FromString(data).details:
            if each.type_url.rpartition("/")[2] == _NAME:
                return errors_pb2.ErrorDetail.FromString(each.value)
    except DecodeError:
        return None
    return None


def _status_class() -> Any:
    """Make the class of a Status with its details, each of which has the two fields of `google.protobuf.Any`."""
    file = descriptor_pb2.FileDescriptorProto(name="status", package="ordergateway.client", syntax="proto3")
    packed = file.message_type.add(name="Packed")
    packed.field.add(name="type_url", number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
    packed.field.add(name="value", number=2, type=_Field.TYPE_BYTES, label=_Field.LABEL_OPTIONAL)
    status = file.message_type.add(name="Status")
    status.field.add(
        name="details",
        number=3,
        type=_Field.TYPE_MESSAGE,
        type_name=".ordergateway.client.Packed",
        label=_Field.LABEL_REPEATED,
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("ordergateway.client.Status"))


_STATUS: Final = _status_class()
