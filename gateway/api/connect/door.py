"""What every Connect call passes, before its body is read, and how a refusal is told (errors.proto)."""

import logging
from contextlib import ExitStack
from contextvars import ContextVar
from typing import Any, Final, TypeAlias

from connectrpc.code import Code
from connectrpc.errors import ConnectError, ErrorDetail
from connectrpc.method import StreamType
from connectrpc.request import RequestContext
from protobuf.wkt import Any as PackedAny

from gateway.api.admission import Admission
from gateway.api.auth import sole_authorization
from gateway.api.call import Call
from gateway.api.errors import ERRORS, detail_of, refusal_of
from gateway.domain.refusals import Reason, Refusal

_log = logging.getLogger(__name__)

_call: ContextVar[Call] = ContextVar("call")

_OWN: Final = {
    Code.INVALID_ARGUMENT: Reason.INVALID_FIELD,
    Code.RESOURCE_EXHAUSTED: Reason.TOO_LARGE,
}
"""What connectrpc itself refuses (no message, too large), by our own reasons."""

Context: TypeAlias = RequestContext[Any, Any]


def call_now() -> Call:
    """Return who calls; each request is served in a context of its own."""
    return _call.get()


class Door:
    """An interceptor: lets the caller in, counts those who wait, turns every error into the contract's."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    async def on_start(self, ctx: Context) -> ExitStack:
        """Let the caller in, or raise the refusal."""
        path = f"/{ctx.method.service_name}/{ctx.method.name}"
        headers = ctx.request_headers
        held = ExitStack()
        try:
            authorization = sole_authorization(headers.getall("authorization"))
            _call.set(self._admission.admit(path, authorization, headers.get("traceparent")))
            if ctx.method.stream_type is not StreamType.UNARY:
                held.enter_context(self._admission.waiting())
        except Exception as error:
            raise _told(error, path) from error
        return held

    async def on_end(self, token: ExitStack, ctx: Context, error: Exception | None, /) -> None:
        """Give the place back, and tell an error in the contract's way."""
        token.close()
        if error is not None:
            raise _told(error, f"/{ctx.method.service_name}/{ctx.method.name}") from error


def _told(error: Exception, path: str) -> ConnectError:
    if isinstance(error, ConnectError):
        reason = _OWN.get(error.code)
        if error.details or reason is None:
            return error
        return connect_error(Refusal(reason, error.message))
    refusal = refusal_of(error)
    if refusal.reason is Reason.INTERNAL:
        _log.error("%s failed", path, exc_info=error)
    return connect_error(refusal)


def connect_error(refusal: Refusal) -> ConnectError:
    """Make the error that tells a refusal: code, message, and the ErrorDetail."""
    detail = detail_of(refusal)
    packed = PackedAny(type_url=f"type.googleapis.com/{detail.DESCRIPTOR.full_name}", value=detail.SerializeToString())
    return ConnectError(Code(ERRORS[refusal.reason].status.lower()), refusal.message, [ErrorDetail(packed)])
