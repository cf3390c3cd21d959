"""Failed calls in the worker's terms: what counts as the gateway's own refusal, and what as no answer at all."""

import grpc
from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status
from grpc.aio import AioRpcError
from ordergateway.v1 import errors_pb2

from worker.gateway.bounds import RETRY_AFTER
from worker.gateway.port import GatewayError, Refused, Unreachable
from worker.gateway.wire import to_seconds

_UNREACHABLE = {
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.CANCELLED,
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.DATA_LOSS,
}
# A refusal for the token's sake settles nothing, so it needs no proof that the gateway itself said it.
_CREDENTIALS = {
    grpc.StatusCode.UNAUTHENTICATED: errors_pb2.ERROR_REASON_UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED: errors_pb2.ERROR_REASON_PERMISSION_DENIED,
}
_NO_SUCH_NAME = "the name cannot be resolved; check RAKUTEN_ORDER_GATEWAY_URL"
_NO_GRPC_PORT = "that is the gateway's HTTP port, or something else; gRPC has one of its own, 31110 unless set"
# What grpc says where no call comes through, and what to look at.
_ADVICE = {
    "WRONG_VERSION_NUMBER": "is TLS on at the gateway? grpcs:// asks for it, grpc:// does not",
    "CERTIFICATE_VERIFY_FAILED": "the gateway's certificate is not trusted here, see RAKUTEN_GATEWAY_CA",
    "Hostname Verification Check failed": "the gateway's certificate is for another name",
    "Socket closed": "if TLS is on at the gateway, its address begins with grpcs://",
    "http1.x server": _NO_GRPC_PORT,
    "missing selected ALPN": _NO_GRPC_PORT,
    "Connection refused": "nothing listens there; is the gateway running? gRPC has a port of its own, 31110 unless set",
    "lookup": _NO_SUCH_NAME,
    "resolution": _NO_SUCH_NAME,
    "Deadline Exceeded": "no answer in time; is the gateway running there, and is this its gRPC port?",
}


def to_gateway_error(error: AioRpcError) -> GatewayError:
    """Return a failed call in the worker's terms.

    Only an ErrorDetail with a reason is the gateway's own word. A status without one may come from anything on the way
    (a proxy's 404 is UNIMPLEMENTED) or from gRPC itself, whatever its code says.
    """
    code, words = error.code(), error.details() or ""
    detail = error_detail(error)
    if code in _UNREACHABLE or (detail is not None and detail.reason == errors_pb2.ERROR_REASON_TOO_MANY):
        said = f"{code.name}: {words}"
        return Unreachable(next((f"{hint} ({said})" for sign, hint in _ADVICE.items() if sign in words), said))
    if detail is None or detail.reason == errors_pb2.ERROR_REASON_UNSPECIFIED:
        if code in _CREDENTIALS:
            return Refused(f"{code.name}: {words}", reason=_CREDENTIALS[code])
        guess = "not an answer of the gateway; is something else, or an older version, at its address?"
        return Unreachable(f"{guess} {code.name}: {words}")
    violations = "; ".join(f"{violation.field}: {violation.description}" for violation in detail.violations)
    return Refused(
        " ".join(part for part in (detail.message or words, violations) if part),
        reason=detail.reason,
        status=detail.current_status,
        recorded_late=detail.recorded_late,
        retry_after=to_seconds(detail.retry_after, RETRY_AFTER) if detail.HasField("retry_after") else None,
        fields=tuple(violation.field for violation in detail.violations),
    )


def error_detail(error: AioRpcError) -> errors_pb2.ErrorDetail | None:
    """Return the contract's ErrorDetail of a refusal; None where it carries none that can be read."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            try:
                status = Status.FromString(value)
                for packed in status.details:
                    detail = errors_pb2.ErrorDetail()
                    if packed.Unpack(detail):
                        return detail
            except DecodeError:
                return None
    return None
