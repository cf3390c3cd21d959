"""The certificate of both ports, taken anew when its files change, so that a renewal needs no restart."""

import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import grpc

CHECK_SECONDS: Final = 5.0
"""How often the files are looked at."""

_log = logging.getLogger(__name__)


class TlsFilesError(Exception):
    """The files cannot be read or do not fit together; the message says which and why."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the server's chain and key, and the CA of the gRPC clients where they must show a certificate."""

    certificate: Path
    key: Path
    client_ca: Path | None

    def read(self) -> "_Contents":
        """Read them all. Raises TlsFilesError."""
        return _Contents(
            _bytes(self.certificate), _bytes(self.key), None if self.client_ca is None else _bytes(self.client_ca)
        )


@dataclass(frozen=True, slots=True)
class _Contents:
    certificate: bytes
    key: bytes
    client_ca: bytes | None


class Certificates:
    """Hands the current certificate to every new connection. It has the shape of a sweep, which watches the files."""

    name = "certificates"
    interval = CHECK_SECONDS

    def __init__(self, files: TlsFiles) -> None:
        """Raises TlsFilesError."""
        self._files = files
        self._contents = files.read()
        self._context = self._load(self._contents)
        self._told = ""
        self.http = _new_context()
        """The HTTP port's context: it passes each connection on to the current one."""
        self.http.sni_callback = self._choose
        self._load_into(self.http)

    def grpc(self) -> grpc.ServerCredentials:
        """Return the gRPC port's credentials, which ask for the current certificate at every handshake."""
        return grpc.dynamic_ssl_server_credentials(
            self._configuration(), self._configuration, require_client_authentication=self._files.client_ca is not None
        )

    async def run_once(self) -> Mapping[str, int]:
        """Take the files anew if they have changed and fit together; else keep what there is."""
        try:
            contents = self._files.read()
            if contents == self._contents:
                return {}
            self._context = self._load(contents)
        except TlsFilesError as error:
            # A renewal replaces one file after the other, so this may be over in a moment.
            if str(error) != self._told:
                _log.warning("the certificate in use stays: %s", error)
            self._told = str(error)
            return {}
        self._contents = contents
        self._told = ""
        return {"renewed": 1}

    def _load(self, contents: _Contents) -> ssl.SSLContext:
        context = _new_context()
        self._load_into(context)
        if self._files.read() != contents:
            raise TlsFilesError("the files are being written")
        return context

    def _load_into(self, context: ssl.SSLContext) -> None:
        try:
            context.load_cert_chain(self._files.certificate, self._files.key, password="")
        except (OSError, ssl.SSLError) as error:
            raise TlsFilesError(f"{self._files.certificate} and {self._files.key} do not fit: {error}") from error

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._context

    def _configuration(self) -> Any:
        contents = self._contents
        return grpc.ssl_server_certificate_configuration(
            [(contents.key, contents.certificate)], root_certificates=contents.client_ca
        )


def _new_context() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsFilesError(f"{path} cannot be read ({error.strerror})") from error
