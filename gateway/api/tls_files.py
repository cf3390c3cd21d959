"""The PEM files of TLS, read and tried before anything is served with them.

A pair of certificate and key is tried by a handshake in memory, with a client that trusts this very certificate: so
what clients would refuse (expired, not for servers, a key of another) is known before any of them meets it.
"""

import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_END: Final = "-----END CERTIFICATE-----"
_MOST_FLIGHTS: Final = 8
"""A handshake is over after two or three."""


class TlsFilesError(Exception):
    """The files cannot be read or do not fit together; the message says which and why."""


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the server's chain and key, and the CA of the gRPC clients where they must show a certificate."""

    certificate: Path
    key: Path
    client_ca: Path | None

    def read(self) -> "Contents":
        """Read them all. Raises TlsFilesError."""
        return Contents(
            _bytes(self.certificate), _bytes(self.key), None if self.client_ca is None else _bytes(self.client_ca)
        )

    def load(self, contents: "Contents") -> ssl.SSLContext:
        """Try what was read and return a context that serves it. Raises TlsFilesError."""
        chain = _certificates(self.certificate, contents.certificate)
        if contents.client_ca is not None and self.client_ca is not None:
            _check_dates(self.client_ca, _certificates(self.client_ca, contents.client_ca), enough=1)
        context = self._context()
        if self.read() != contents:
            raise TlsFilesError("the files are being written")
        refused = _refused_by_a_client(context, contents.certificate.decode())
        if refused:
            raise TlsFilesError(f"{self.certificate}: {refused}")
        _check_dates(self.certificate, chain, enough=len(chain.get_ca_certs()))
        return context

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        try:
            context.load_cert_chain(self.certificate, self.key, password="")
        except OSError as error:  # an SSLError is one
            reason = getattr(error, "reason", None) or error
            if "MISMATCH" in str(reason):
                raise TlsFilesError(f"{self.key} does not fit {self.certificate}: it is another's key") from error
            raise TlsFilesError(
                f"{self.key} does not fit {self.certificate}: no private key in PEM without a password ({reason})"
            ) from error
        return context


@dataclass(frozen=True, slots=True)
class Contents:
    """What stood in the files."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None

    @property
    def leaf(self) -> bytes:
        """The server's own certificate, DER: the first of the chain."""
        return ssl.PEM_cert_to_DER_cert(_first(self.certificate.decode()))


def _first(chain: str) -> str:
    begin = chain.index("-----BEGIN CERTIFICATE-----")
    return chain[begin : chain.index(_END, begin) + len(_END)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TlsFilesError(f"{path} cannot be read ({error.strerror})") from error


def _certificates(path: Path, data: bytes) -> ssl.SSLContext:
    """Return a context that trusts the certificates of a file. Raises TlsFilesError if one cannot be read."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        trusting.load_verify_locations(cadata=data.decode("ascii"))
    except (ValueError, ssl.SSLError) as error:  # a UnicodeDecodeError is a ValueError
        why = "it is empty" if not data.strip() else "what stands there is no certificate in PEM, or only a part of one"
        raise TlsFilesError(f"{path} cannot be used: {why}") from error
    return trusting


def _check_dates(path: Path, loaded: ssl.SSLContext, *, enough: int) -> None:
    """Raise TlsFilesError unless `enough` of the CA certificates are valid today (a list ages in parts)."""
    valid, told = 0, ""
    for found in loaded.get_ca_certs():
        told = _out_of_date(found) or told
        valid += not _out_of_date(found)
    if told and valid < enough:
        raise TlsFilesError(f"{path}: {told}")


def _out_of_date(certificate: dict[str, Any]) -> str:
    now = time.time()
    name = ", ".join("=".join(pair) for part in certificate["subject"] for pair in part)
    if ssl.cert_time_to_seconds(certificate["notAfter"]) < now:
        return f"the certificate of {name} expired on {certificate['notAfter']}"
    if ssl.cert_time_to_seconds(certificate["notBefore"]) > now:
        return f"the certificate of {name} is not valid before {certificate['notBefore']}"
    return ""


def _refused_by_a_client(serving: ssl.SSLContext, chain: str) -> str:
    """Shake hands in memory with a client that trusts this chain; return why it refuses, "" if it does not."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname = False
    trusting.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    trusting.load_verify_locations(cadata=chain)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [trusting.wrap_bio(to_client, to_server), serving.wrap_bio(to_server, to_client, server_side=True)]
    for _ in range(_MOST_FLIGHTS):
        for side in list(sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_message
            except ssl.SSLError as error:
                return str(error.reason)
            sides.remove(side)
        if not sides:
            return ""
    return "no handshake can be made with it"
