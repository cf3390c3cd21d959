"""What every gRPC call passes: who calls, may they, is it a message at all, and how a refusal is told.

The request is decoded here, after the caller is known, so that bytes that are no message get INVALID_ARGUMENT instead
of grpc's INTERNAL. What a fault says stays in the log; the caller sees only that there was one.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextvars import ContextVar
from typing import Any, NoReturn, TypeAlias

import grpc
from google.protobuf import any_pb2
from google.protobuf.message import DecodeError
from google.rpc import status_pb2

from gateway.api.access import ACCESS, OPEN_SERVICE
from gateway.api.auth import OPEN, Authenticator, Identity, require
from gateway.api.errors import ERRORS, detail_of
from gateway.domain.refusals import Reason, Refusal, RefusedError, invalid
from gateway.store.port import StoreUnavailableError

_log = logging.getLogger(__name__)

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]
Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

caller: ContextVar[Identity] = ContextVar("caller", default=OPEN)
"""Who makes the call that the current task serves."""


class Guard(grpc.aio.ServerInterceptor):
    """Stands before every method but the health service's."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator
        self._running: set[object] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    async def idle(self) -> None:
        """Wait until no call runs any more: the server's own stop does not wait for what handlers do at their end."""
        await self._idle.wait()

    @contextlib.contextmanager
    def _tracked(self) -> Iterator[None]:
        call = object()
        self._running.add(call)
        self._idle.clear()
        try:
            yield
        finally:
            self._running.discard(call)
            if not self._running:
                self._idle.set()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable["Handler | None"]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> "Handler | None":
        """Wrap the method's handler; grpc itself answers UNIMPLEMENTED where there is none."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method.startswith(OPEN_SERVICE):
            return handler
        if handler.request_streaming:
            return self._guard_reflection(handler, method)
        return self._guard_method(handler, method)

    def _guard_method(self, handler: Handler, method: str) -> Handler:
        decode = handler.request_deserializer or bytes
        if handler.response_streaming:
            serve: Any = handler.unary_stream

            async def stream(request: bytes, context: Context) -> AsyncIterator[Any]:
                with self._tracked():
                    try:
                        message = self._admit(method, decode, request, context)
                        async with contextlib.aclosing(serve(message, context)) as answers:
                            async for answer in answers:
                                yield answer
                    except (RefusedError, StoreUnavailableError) as error:
                        await _abort(context, error)
                    except Exception as error:  # noqa: BLE001 - told as INTERNAL and logged
                        await _abort_fault(context, method, error)

            return grpc.unary_stream_rpc_method_handler(stream, None, handler.response_serializer)
        answer_one: Any = handler.unary_unary

        async def unary(request: bytes, context: Context) -> Any:
            with self._tracked():
                try:
                    return await answer_one(self._admit(method, decode, request, context), context)
                except (RefusedError, StoreUnavailableError) as error:
                    await _abort(context, error)
                except Exception as error:  # noqa: BLE001 - told as INTERNAL and logged
                    await _abort_fault(context, method, error)

        return grpc.unary_unary_rpc_method_handler(unary, None, handler.response_serializer)

    def _guard_reflection(self, handler: Handler, method: str) -> Handler:
        serve: Any = handler.stream_stream

        async def stream(requests: AsyncIterator[Any], context: Context) -> AsyncIterator[Any]:
            try:
                self._let_in(method, context)
            except RefusedError as error:
                await _abort(context, error)
            async for answer in serve(requests, context):
                yield answer

        return grpc.stream_stream_rpc_method_handler(stream, handler.request_deserializer, handler.response_serializer)

    def _let_in(self, method: str, context: Context) -> None:
        authorization = None
        for key, value in context.invocation_metadata() or ():
            if key == "authorization":
                authorization = value if isinstance(value, str) else None
        identity = self._authenticator.identify(authorization)
        require(identity, ACCESS.get(method, frozenset()), method.rpartition("/")[2])
        caller.set(identity)

    def _admit(self, method: str, decode: Callable[[bytes], Any], request: bytes, context: Context) -> Any:
        self._let_in(method, context)
        try:
            return decode(request)
        except DecodeError:
            raise invalid("request", "is no valid message of this method (truncated, or a text is not UTF-8)") from None


async def _abort(context: Context, error: RefusedError | StoreUnavailableError) -> NoReturn:
    if isinstance(error, RefusedError):
        await abort(context, error.refusal)
    await abort(context, Refusal(Reason.STORE_UNAVAILABLE, "the database cannot do this now; send it again later"))


async def _abort_fault(context: Context, method: str, error: Exception) -> NoReturn:
    if isinstance(error, grpc.aio.AbortError):
        raise error
    _log.error("%s failed", method, exc_info=error)
    await abort(context, Refusal(Reason.INTERNAL, "the gateway has a fault; its log says more"))


async def abort(context: Context, refusal: Refusal) -> NoReturn:
    """End a call with a refusal: status, message, and the ErrorDetail in `grpc-status-details-bin`."""
    code: grpc.StatusCode = getattr(grpc.StatusCode, ERRORS[refusal.reason].status)
    packed = any_pb2.Any()
    packed.Pack(detail_of(refusal))
    status = status_pb2.Status(code=code.value[0], message=refusal.message, details=[packed])
    await context.abort(code, refusal.message, (("grpc-status-details-bin", status.SerializeToString()),))
