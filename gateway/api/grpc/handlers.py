"""What every gRPC call passes: who calls, may they, is it a message at all, and how a refusal is told.

The caller is known before the request is waited for, and the request is decoded here, so that bytes that are no message
get INVALID_ARGUMENT instead of grpc's INTERNAL. What a fault says stays in the log; the caller sees only that there was
one. All kinds of handlers stand here together, since each has to have all of it.
"""

import asyncio
import contextlib
import logging
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeAlias

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError, Message
from google.rpc import status_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import sole_authorization
from gateway.api.call import Call, Method
from gateway.api.errors import ERRORS, detail_of, refusal_of
from gateway.api.grpc.health import Health
from gateway.api.grpc.incoming import MAX_MESSAGE_BYTES, Context, Intake, Place, Places
from gateway.api.grpc.outgoing import Answer, Outgoing
from gateway.domain.refusals import Reason, Refusal, RefusedError, invalid
from gateway.request_id import HEADER, begin_request

_log = logging.getLogger(__name__)

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

REFLECTION_METHOD: Final = "ServerReflectionInfo"

MAX_UNREAD: Final = 256
"""How many calls of one caller may have their requests on the way at once, each up to the largest request."""

MAX_REFLECTING: Final = 64
"""How many calls of the reflection service one caller may have."""

_READS: Final = ("Get", "List")
"""How the names of the methods begin whose answers may be large. They wait for room before they read anything."""

MAX_REFLECTIONS: Final = 4
"""How many requests of the reflection service may be on their way at once."""


class Running:
    """Counts the calls that run: each holds it as a context."""

    def __init__(self) -> None:
        self.calls = 0
        self._one_ended = asyncio.Event()

    def __enter__(self) -> None:
        """Count one more."""
        self.calls += 1

    def __exit__(self, *_error: object) -> None:
        """Count it no more."""
        self.calls -= 1
        self._one_ended.set()

    async def ended(self, left: Callable[[], int]) -> None:
        """Wait until the end of a call leaves none of those that `left` counts."""
        while left():
            self._one_ended.clear()
            await self._one_ended.wait()


class GrpcHandlers:
    """Makes the gRPC handlers of methods and knows which calls are running."""

    def __init__(self, admission: Admission, message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        """`message_bytes`: the largest request that is taken."""
        self._admission = admission
        self._message_bytes = message_bytes
        self._outgoing, self._to_strangers = Outgoing(), Outgoing()
        self._unread: defaultdict[str, Places] = defaultdict(lambda: Places(MAX_UNREAD, "sending their requests"))
        self._reflecting: defaultdict[str, Places] = defaultdict(
            lambda: Places(MAX_REFLECTING, "being told what is here")
        )
        self._intake = Intake()
        self._reflected = Intake(MAX_REFLECTIONS, MAX_REFLECTIONS)
        self._running = Running()
        self._streams = 0

    async def idle(self) -> None:
        """Wait until no call runs any more: the server's own stop does not wait for what handlers do at their end."""
        await self._running.ended(lambda: self._running.calls)

    async def streams_ended(self) -> None:
        """Wait until no stream is open any more; what a refused one was told is then on its connection."""
        await self._running.ended(lambda: self._streams)

    def late(self) -> set[str]:
        """To be called once a second. End the requests that do not come; return the connections to cut off, as
        `Outgoing` says.
        """
        self._intake.end_the_late()
        self._reflected.end_the_late()
        return {*self._outgoing.late(), *self._to_strangers.late()}

    def handler(self, method: Method) -> "Handler":
        """Return the handler of a method."""
        return self._stream(method) if method.streams else self._unary(method)

    def _unary(self, method: Method) -> "Handler":
        async def serve(_requests: object, context: Context) -> list[bytes]:
            with self._running:
                try:
                    call = self._admit(method.path, context)
                    answer = self._answer(call, context)
                    with self._intake.place(call.identity.name) as place:
                        request = await self._request(method, call, context, place)
                        if method.name.startswith(_READS):
                            await answer.reserve(page=call.lists)
                        async with self._admission.turn(call):
                            boxed = [_encode(await method.serve(request, call))]
                    await answer.leave(boxed)
                except Exception as error:  # noqa: BLE001 - told to the caller, and logged if it is a fault
                    await _abort(context, method.path, error)
            return boxed

        return grpc.stream_unary_rpc_method_handler(serve, None, _unboxed)

    def _stream(self, method: Method) -> "Handler":
        async def serve(_requests: object, context: Context) -> AsyncIterator[list[bytes]]:
            with self._running, contextlib.ExitStack() as held:
                try:
                    call = self._admit(method.path, context)
                    answer = self._answer(call, context)
                    with self._intake.place(call.identity.name) as place:
                        request = await self._request(method, call, context, place)
                        held.enter_context(self._streaming(call))
                    await answer.reserve(page=False)
                    async with contextlib.aclosing(method.serve(request, call)) as messages:
                        async for message in messages:
                            boxed = [_encode(message)]
                            del message
                            await answer.leave(boxed)
                            yield boxed
                            answer.taken()
                except Exception as error:  # noqa: BLE001 - told to the caller, and logged if it is a fault
                    await _abort(context, method.path, error)

        return grpc.stream_stream_rpc_method_handler(serve, None, _unboxed)

    def reflection_handler(self, servicer: Any) -> "Handler":
        """Return the handler of the reflection service, for who has any role.

        Guarded here and not by an interceptor, which would stand before every call and cost each a seventh more.
        """
        path = f"/{reflection.SERVICE_NAME}/{REFLECTION_METHOD}"

        async def serve(_requests: object, context: Context) -> AsyncIterator[list[bytes]]:
            async def asked() -> AsyncIterator[Message]:
                async for data in self._reflected.requests(context, call.identity.name):
                    yield _decode(reflection_pb2.ServerReflectionRequest, data)

            try:
                call = self._admit(path, context)
                with self._reflecting[call.identity.name]:
                    answer = self._answer(call, context)
                    async for message in servicer.ServerReflectionInfo(asked(), context):
                        boxed = [_encode(message)]
                        await answer.leave(boxed)
                        yield boxed
                        answer.taken()
            except RefusedError as error:
                await abort(context, error.refusal)

        return grpc.stream_stream_rpc_method_handler(serve, None, _unboxed)

    def health_handlers(self, health: Health) -> "dict[str, Handler]":
        """Return the handlers of gRPC's health service, which is open to all."""

        async def check(_requests: object, context: Context) -> bytes:
            try:
                data = await health.check(context)
                await self._to_strangers.answer("", context).leave([data])
            except RefusedError as error:
                await abort(context, error.refusal)
            return data

        async def watch(_requests: object, context: Context) -> AsyncIterator[bytes]:
            try:
                async with contextlib.aclosing(health.watch(context)) as answers:
                    async for answer in answers:
                        yield answer
            except RefusedError as error:
                await abort(context, error.refusal)

        return {
            "Check": grpc.stream_unary_rpc_method_handler(check, None, None),
            "Watch": grpc.stream_stream_rpc_method_handler(watch, None, None),
        }

    async def _request(self, method: Method, call: Call, context: Context, place: Place) -> Message:
        with self._unread[call.identity.name]:
            data = await place.request(context)
        if len(data) > self._message_bytes:
            why = f"a request is at most {self._message_bytes:,} bytes, this one has {len(data):,}"
            raise RefusedError(Refusal(Reason.TOO_LARGE, why))
        return method.decode(data)

    def _answer(self, call: Call, context: Context) -> Answer:
        # Workers' methods are few at a time, and an order must not wait for those who only look.
        return self._outgoing.answer(call.identity.name, context, waits=not call.of_workers)

    def _admit(self, path: str, context: Context) -> Call:
        authorizations: list[str] = []
        traceparent = request_id = None
        for key, value in context.invocation_metadata() or ():
            if not isinstance(value, str):
                continue
            if key == "authorization":
                authorizations.append(value)
            elif key == "traceparent":
                traceparent = value
            elif key == HEADER:
                request_id = value
        begin_request(request_id)
        return self._admission.admit(path, sole_authorization(authorizations), traceparent)

    @contextlib.contextmanager
    def _streaming(self, call: Call) -> Iterator[None]:
        """Hold a place among those who wait, for a stream whose request has come, until its last word is said."""
        self._streams += 1
        try:
            with self._admission.waiting(call):
                yield
        finally:
            self._streams -= 1


def _decode(message: type[Message], data: bytes) -> Message:
    try:
        return message.FromString(data)
    except DecodeError:
        raise invalid("request", "is no valid message of this method") from None


def _encode(message: Message) -> bytes:
    return message.SerializeToString()


def _unboxed(boxed: list[bytes]) -> bytes:
    """Take a message out: grpc keeps what a stream has yielded until the next one comes, which may take hours."""
    return boxed.pop()


async def _abort(context: Context, path: str, error: Exception) -> NoReturn:
    refusal = refusal_of(error)
    if refusal.reason is Reason.INTERNAL:
        _log.error("%s failed", path, exc_info=error)
    await abort(context, refusal)


async def abort(context: Context, refusal: Refusal) -> NoReturn:
    """End a call with a refusal: status, message, and the ErrorDetail in `grpc-status-details-bin`."""
    await context.abort(*_in_words_of_grpc(refusal))


@lru_cache(maxsize=64)
def _in_words_of_grpc(refusal: Refusal) -> tuple[grpc.StatusCode, str, tuple[tuple[str, bytes], ...]]:
    """Return status, message and metadata. Kept, since a flood of strangers is told the same again and again."""
    code: grpc.StatusCode = getattr(grpc.StatusCode, ERRORS[refusal.reason].status)
    detail = detail_of(refusal)
    packed = any_pb2.Any()
    packed.Pack(detail)
    status = status_pb2.Status(code=code.value[0], message=detail.message, details=[packed])
    return code, detail.message, (("grpc-status-details-bin", status.SerializeToString()),)
