"""How a refusal is told over Connect and gRPC-Web (errors.proto), connectrpc's own refusals included."""

import base64
import json
import logging
from http import HTTPStatus
from typing import Any, Final

from connectrpc.code import Code
from connectrpc.errors import ConnectError, ErrorDetail
from connectrpc.server import ConnectASGIApplication
from protobuf.wkt import Any as PackedAny

from gateway.api.errors import ERRORS, detail_of, refusal_of
from gateway.domain.refusals import Reason, Refusal, Violation

_log = logging.getLogger(__name__)

_OWN: Final = {
    Code.INVALID_ARGUMENT: Reason.INVALID_FIELD,
    Code.UNIMPLEMENTED: Reason.INVALID_FIELD,
    Code.RESOURCE_EXHAUSTED: Reason.TOO_LARGE,
    Code.INTERNAL: Reason.INVALID_FIELD,
}
"""What connectrpc itself refuses (no message, a header or a compression that it cannot read, too large), by our own
reasons. Its INTERNAL is a frame that is marked as compressed although the call is not."""

_HTTP: Final = {
    HTTPStatus.NOT_FOUND: (Code.UNIMPLEMENTED, "method", "this service has no such method"),
    HTTPStatus.METHOD_NOT_ALLOWED: (Code.INVALID_ARGUMENT, "method", "must be called with POST"),
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE: (
        Code.INVALID_ARGUMENT,
        "content-type",
        "must be application/json or application/proto, of a stream application/connect+json or +proto",
    ),
}
"""What connectrpc refuses by the HTTP status alone, without a body."""


class ToldASGIApplication(ConnectASGIApplication[Any]):
    """Gives every error that connectrpc itself makes its ErrorDetail. To be put before a generated application."""

    async def _handle_error(self, exc: Exception, ctx: Any, protocol: Any, send: Any) -> bool:
        """Tell an error; what is refused before a method is known passes no interceptor, but it passes here."""
        status = getattr(exc, "status", None)
        if status in _HTTP and not send.started and not send.failed:
            await _tell(status, exc, send)
            return True
        return await super()._handle_error(told(exc, "Connect"), ctx, protocol, send)


def told(error: Exception, where: str) -> ConnectError:
    """Return an error in the contract's way. A fault is logged with `where` it happened, and its text stays there."""
    if isinstance(error, ConnectError):
        reason = _OWN.get(error.code)
        if error.details or reason is None:
            return error
        violations = () if reason is Reason.TOO_LARGE else (Violation("request", error.message),)
        return _connect_error(error.code, Refusal(reason, error.message, violations))
    refusal = refusal_of(error)
    if refusal.reason is Reason.INTERNAL:
        _log.error("%s failed", where, exc_info=error)
    return connect_error(refusal)


def connect_error(refusal: Refusal) -> ConnectError:
    """Make the error that tells a refusal: code, message, and the ErrorDetail."""
    return _connect_error(Code(ERRORS[refusal.reason].status.lower()), refusal)


def _connect_error(code: Code, refusal: Refusal) -> ConnectError:
    detail = detail_of(refusal)
    packed = PackedAny(type_url=f"type.googleapis.com/{detail.DESCRIPTOR.full_name}", value=detail.SerializeToString())
    return ConnectError(code, detail.message, [ErrorDetail(packed)])


async def _tell(status: HTTPStatus, error: Any, send: Any) -> None:
    code, field, words = _HTTP[status]
    detail = detail_of(Refusal(Reason.INVALID_FIELD, f"{field}: {words}", (Violation(field, words),)))
    value = base64.b64encode(detail.SerializeToString()).decode().rstrip("=")
    body = {"code": code.value, "message": detail.message}
    document = {**body, "details": [{"type": detail.DESCRIPTOR.full_name, "value": value}]}
    headers = [(name.lower().encode(), text.encode()) for name, text in error.headers]
    headers.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status.value, "headers": headers, "trailers": False})
    await send({"type": "http.response.body", "body": json.dumps(document).encode(), "more_body": False})
