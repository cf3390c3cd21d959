"""Why a gateway gives no answer, told from what gRPC says of the connection, and what to do about it."""

import socket
import ssl
from typing import Final

from common.gateway_target import GatewayTarget

PROBE_SECONDS: Final = 3.0

_GRPC_PORT: Final = "gRPC has a port of its own (31110 unless set)"


def why_unreachable(target: GatewayTarget, words: str) -> str:
    """Return one line for a call that failed before the gateway could answer; `words` are gRPC's details."""
    place = target.address
    if "CERTIFICATE_VERIFY_FAILED" in words:
        fault = words.partition("CERTIFICATE_VERIFY_FAILED: ")[2].removesuffix(": OK")
        return (
            f"the certificate of the gateway at {place} is not trusted here ({fault or 'it cannot be verified'}); name "
            "the PEM file of the authority that signed it with RAKUTEN_GATEWAY_CA"
        )
    if "Hostname Verification Check failed" in words:
        return f"the certificate of the gateway at {place} is for another name than {target.host}; use that name"
    if "WRONG_VERSION_NUMBER" in words:
        return f"there is no TLS at {place}; if that is the gateway, write grpc:// instead of grpcs://; {_GRPC_PORT}"
    if "http1.x server" in words or "ALPN" in words:
        return f"{place} speaks HTTP/1.1, so it is the gateway's HTTP port or something else; {_GRPC_PORT}"
    if "Socket closed" in words or "Connection reset" in words:
        return _why_closed(target)
    if "lookup" in words or "resolving" in words:
        return f"the name {target.host} cannot be resolved; check it, or name another gateway with --gateway"
    if "Connection refused" in words:
        return f"nothing listens at {place}; is the gateway running there? {_GRPC_PORT}"
    return (
        f"the gateway at {place} cannot be reached; is it running there, and is this its gRPC port (31110 unless set, "
        "not the HTTP port)? Name another with --gateway"
    )


def _why_closed(target: GatewayTarget) -> str:
    if target.tls:
        return (
            f"{target.address} ended the connection; does the gateway ask for a client certificate "
            "(RAKUTEN_OPERATOR_TLS_CERT and RAKUTEN_OPERATOR_TLS_KEY)?"
        )
    if _speaks_tls(target):
        return (
            f"TLS is on at {target.address}: write grpcs:// instead of grpc:// (--gateway or RAKUTEN_ORDER_GATEWAY_URL)"
        )
    return f"{target.address} ended the connection; is it the gateway? {_GRPC_PORT}"


def _speaks_tls(target: GatewayTarget) -> bool:
    """Begin TLS without a word of ours in it: no token is sent, and whose certificate it is does not matter."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((target.host, target.port), PROBE_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=target.host),
        ):
            return True
    except OSError:
        return False
