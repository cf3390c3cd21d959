"""What every gRPC call passes: who calls, may they, is it a message at all, and how a refusal is told.

The request is decoded here, after the caller is known, so that bytes that are no message get INVALID_ARGUMENT instead
of grpc's INTERNAL. What a fault says stays in the log; the caller sees only that there was one.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any, Final, NoReturn, TypeAlias

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import status_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

from gateway.api.admission import Admission
from gateway.api.call import Call, Method
from gateway.api.errors import ERRORS, detail_of, refusal_of
from gateway.api.request_id import HEADER, begin_request
from gateway.domain.refusals import Reason, Refusal, RefusedError

_log = logging.getLogger(__name__)

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

REFLECTION_METHOD: Final = "ServerReflectionInfo"


class Guard:
    """Makes the gRPC handlers of methods and knows which calls are running."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._running = self._streams = 0
        self._call_ended = asyncio.Event()

    async def idle(self) -> None:
        """Wait until no call runs any more: the server's own stop does not wait for what handlers do at their end."""
        while self._running:
            self._call_ended.clear()
            await self._call_ended.wait()

    async def streams_ended(self) -> None:
        """Wait until no stream is open any more; what a refused one was told is then on its connection."""
        while self._streams:
            self._call_ended.clear()
            await self._call_ended.wait()

    def handler(self, method: Method) -> "Handler":
        """Return the handler of a method."""
        return self._stream(method) if method.streams else self._unary(method)

    def _unary(self, method: Method) -> "Handler":
        async def serve(data: bytes, context: Context) -> Message:
            self._running += 1
            try:
                call = self._admit(method.path, context)
                answer: Message = await method.serve(method.decode(data), call)
            except Exception as error:  # noqa: BLE001 - told to the caller, and logged if it is a fault
                await _abort(context, method.path, error)
            finally:
                self._end_call()
            return answer

        return grpc.unary_unary_rpc_method_handler(serve, None, _encode)

    def _stream(self, method: Method) -> "Handler":
        async def serve(data: bytes, context: Context) -> AsyncIterator[Message]:
            self._running += 1
            self._streams += 1
            try:
                call = self._admit(method.path, context)
                with self._admission.waiting():
                    async with contextlib.aclosing(method.serve(method.decode(data), call)) as answers:
                        async for answer in answers:
                            yield answer
            except Exception as error:  # noqa: BLE001 - told to the caller, and logged if it is a fault
                await _abort(context, method.path, error)
            finally:
                self._streams -= 1
                self._end_call()

        return grpc.unary_stream_rpc_method_handler(serve, None, _encode)

    def reflection_handler(self, servicer: Any) -> "Handler":
        """Return the handler of the reflection service, for who has any role.

        Guarded here and not by an interceptor, which would stand before every call and cost each a seventh more.
        """

        async def serve(requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Message]:
            try:
                self._admit(f"/{reflection.SERVICE_NAME}/{REFLECTION_METHOD}", context)
            except RefusedError as error:
                await abort(context, error.refusal)
            async for answer in servicer.ServerReflectionInfo(requests, context):
                yield answer

        decode = reflection_pb2.ServerReflectionRequest.FromString
        return grpc.stream_stream_rpc_method_handler(serve, decode, _encode)

    def _admit(self, path: str, context: Context) -> Call:
        authorization = traceparent = request_id = None
        for key, value in context.invocation_metadata() or ():
            if key == "authorization" and isinstance(value, str):
                authorization = value
            elif key == "traceparent" and isinstance(value, str):
                traceparent = value
            elif key == HEADER and isinstance(value, str):
                request_id = value
        begin_request(request_id)
        return self._admission.admit(path, authorization, traceparent)

    def _end_call(self) -> None:
        self._running -= 1
        self._call_ended.set()


def _encode(message: Message) -> bytes:
    return message.SerializeToString()


async def _abort(context: Context, path: str, error: Exception) -> NoReturn:
    refusal = refusal_of(error)
    if refusal.reason is Reason.INTERNAL:
        _log.error("%s failed", path, exc_info=error)
    await abort(context, refusal)


async def abort(context: Context, refusal: Refusal) -> NoReturn:
    """End a call with a refusal: status, message, and the ErrorDetail in `grpc-status-details-bin`."""
    code: grpc.StatusCode = getattr(grpc.StatusCode, ERRORS[refusal.reason].status)
    detail = detail_of(refusal)
    packed = any_pb2.Any()
    packed.Pack(detail)
    status = status_pb2.Status(code=code.value[0], message=detail.message, details=[packed])
    await context.abort(code, detail.message, (("grpc-status-details-bin", status.SerializeToString()),))
