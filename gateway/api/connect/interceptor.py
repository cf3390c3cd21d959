"""What every Connect call passes, before its body is read."""

from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import Any, TypeAlias

from connectrpc.method import StreamType
from connectrpc.request import RequestContext

from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import sole_authorization
from gateway.api.call import Call
from gateway.api.connect.errors import told

_call: ContextVar[Call] = ContextVar("call")

Context: TypeAlias = RequestContext[Any, Any]


def call_now() -> Call:
    """Return who calls; each request is served in a context of its own."""
    return _call.get()


class ConnectInterceptor:
    """An interceptor: lets the caller in, counts those who wait, turns every error into the contract's."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    async def on_start(self, ctx: Context) -> AsyncExitStack:
        """Let the caller in, or raise the refusal."""
        path = f"/{ctx.method.service_name}/{ctx.method.name}"
        headers = ctx.request_headers
        held = AsyncExitStack()
        try:
            authorization = sole_authorization(headers.getall("authorization"))
            call = self._admission.admit(path, authorization, headers.get("traceparent"))
            _call.set(call)
            if ctx.method.stream_type is not StreamType.UNARY:
                held.enter_context(self._admission.waiting(call))
            await held.enter_async_context(self._admission.turn(call))
        except Exception as error:
            raise told(error, path) from error
        return held

    async def on_end(self, token: AsyncExitStack, ctx: Context, error: Exception | None, /) -> None:
        """Give the place back, and tell an error in the contract's way."""
        await token.aclose()
        if error is not None:
            raise told(error, f"/{ctx.method.service_name}/{ctx.method.name}") from error
