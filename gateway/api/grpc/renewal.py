"""A gRPC server's certificate that is renewed while it serves, without the fault that grpc has there.

Why: docs/adr/0008-renewal-beside-grpc.md.

grpc asks a function for a new certificate at every handshake. Whenever that returns one, it throws the former away,
while another thread may be about to begin a handshake with it: a use after free that ends the process (grpc issue
36693). So the function answers None but once a renewal, and only while a handshake that was begun for this purpose, and
is left unfinished, holds on to the former certificate; grpc drops it when that handshake ends, seconds after the last
thread has moved on.
"""

import asyncio
import ssl
import time
from dataclasses import dataclass
from typing import Any, Final

import grpc

from gateway.api.tls_files import Contents

HANDSHAKE_SECONDS: Final = 20.0
"""How long grpc lets a handshake take. An unfinished one holds the former certificate for that long."""

_SWAP_SECONDS: Final = HANDSHAKE_SECONDS / 2
"""How long after that handshake's begin a new certificate may be taken: what is left is for threads that lag."""

_CONNECT_SECONDS: Final = 5.0
_MOST_READ: Final = 65_536


class RenewalError(Exception):
    """The port has not taken the new certificate; the message says why. It may be tried again."""


@dataclass(frozen=True, slots=True)
class _Offer:
    contents: Contents
    until: float


class GrpcCertificate:
    """The certificate of a gRPC port. `renew` works once the port is known (`serves`)."""

    def __init__(self, contents: Contents) -> None:
        self._first = contents
        self._offer: _Offer | None = None
        self._address: tuple[str, int] | None = None
        self._holding: set[asyncio.StreamWriter] = set()

    def credentials(self) -> grpc.ServerCredentials:
        """Return the port's credentials."""
        return grpc.dynamic_ssl_server_credentials(
            _configuration(self._first),
            self._asked,
            require_client_authentication=self._first.client_ca is not None,
        )

    def serves(self, host: str, port: int) -> None:
        """Tell where the port is."""
        everywhere = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where it listens is decided elsewhere
        self._address = everywhere.get(host, host), port

    async def renew(self, contents: Contents) -> None:
        """Have the port take another certificate; every connection goes on. Raises RenewalError."""
        begun = time.monotonic()
        holding, _ = await self._begin_handshake()
        self._holding.add(holding)
        asyncio.get_running_loop().call_later(HANDSHAKE_SECONDS, self._let_go, holding)
        self._offer = _Offer(contents, begun + _SWAP_SECONDS)
        try:
            # grpc takes it at the next handshake: this one, or that of somebody who was quicker.
            probe, shown = await self._begin_handshake()
            probe.transport.abort()
            if self._offer is not None or shown != contents.leaf:
                raise RenewalError("the gRPC port goes on with the former certificate")
        finally:
            self._offer = None

    def close(self) -> None:
        """Let go of former certificates, once the port is closed."""
        for holding in list(self._holding):
            self._let_go(holding)

    def _let_go(self, holding: asyncio.StreamWriter) -> None:
        self._holding.discard(holding)
        holding.transport.abort()

    def _asked(self) -> Any:
        """Answer grpc, which asks in one of its threads and one at a time."""
        offer = self._offer
        if offer is None or time.monotonic() > offer.until:
            return None
        self._offer = None
        return _configuration(offer.contents)

    async def _begin_handshake(self) -> tuple[asyncio.StreamWriter, bytes]:
        """Begin a handshake that is never finished; return its connection and the certificate shown (DER)."""
        if self._address is None:
            raise RenewalError("the gRPC port is not open yet")
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                reader, writer = await asyncio.open_connection(*self._address)
                try:
                    return writer, await _certificate_shown(reader, writer)
                except BaseException:
                    writer.transport.abort()
                    raise
        except (OSError, TimeoutError) as error:
            raise RenewalError(f"the gRPC port does not answer a handshake of the gateway's own ({error})") from error


async def _certificate_shown(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Shake hands up to the client's last message, which is kept back (TLS 1.3). Raises OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing)
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            writer.write(outgoing.read())
            data = await reader.read(_MOST_READ)
            if not data:
                raise ConnectionResetError("it was closed") from None
            incoming.write(data)
        else:
            return tls.getpeercert(binary_form=True) or b""


def _configuration(contents: Contents) -> Any:
    return grpc.ssl_server_certificate_configuration(
        [(contents.key, contents.certificate)], root_certificates=contents.client_ca
    )
