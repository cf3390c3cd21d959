"""What a transport tells a service of the call it serves, and the methods that the contract gives a service."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from gateway.api.auth.authenticator import Identity
from gateway.api.entries import check_entries
from gateway.domain.refusals import Reason, Refusal, RefusedError, invalid

MAX_PLAIN_BYTES: Final = 64 * 1024
"""The largest request of a method that takes no JSON text: all its fields at their limits take less."""

_WORD: Final = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Call:
    """Who calls, the W3C trace context of the call ("" without one), whether only workers may call this method, and
    whether it answers a page of a list.
    """

    identity: Identity
    traceparent: str = ""
    of_workers: bool = False
    lists: bool = False


@dataclass(frozen=True, slots=True)
class Method:
    """A method of the contract that a service offers.

    `attribute` is its name in the service's class. `serve` takes (request, call); it is a coroutine function, or an
    async generator function where `streams`.
    """

    path: str
    name: str
    attribute: str
    streams: bool
    request_type: type[Message]
    serve: Callable[[Any, Call], Any]

    def decode(self, data: bytes) -> Message:
        """Read a request. Raises RefusedError if the bytes are no message of this method."""
        check_size(self.request_type, len(data))
        check_entries(self.request_type, data)
        try:
            return self.request_type.FromString(data)
        except DecodeError:
            raise invalid("request", "is no valid message of this method (truncated, or a text is not UTF-8)") from None


def check_size(message_type: type[Message], size: int) -> None:
    """Refuse a request that is larger than any of its kind, before it is read: as values it may take ten times as much.

    Raises RefusedError TOO_LARGE.
    """
    if size > MAX_PLAIN_BYTES and not _takes_text(message_type.DESCRIPTOR):
        why = f"a request of this method is at most {MAX_PLAIN_BYTES:,} bytes, this one has {size:,}"
        raise RefusedError(Refusal(Reason.TOO_LARGE, why))


@cache
def _takes_text(descriptor: Descriptor) -> bool:
    """Tell whether a JSON text, which may be large, stands in a message or in what it holds."""
    return any(
        field.name.endswith("_json") or (field.message_type is not None and _takes_text(field.message_type))
        for field in descriptor.fields
    )


def methods_of(service: object, descriptor: ServiceDescriptor) -> Iterator[Method]:
    """Yield the methods of `descriptor`, which `service` implements. Raises TypeError where one is missing."""
    for method in descriptor.methods:
        attribute = _WORD.sub("_", method.name).lower()
        serve = getattr(service, attribute, None)
        if serve is None:
            raise TypeError(f"{type(service).__name__} has no {attribute}, which {descriptor.full_name} promises")
        yield Method(
            path=f"/{descriptor.full_name}/{method.name}",
            name=method.name,
            attribute=attribute,
            streams=method.server_streaming,
            request_type=GetMessageClass(method.input_type),
            serve=serve,
        )
