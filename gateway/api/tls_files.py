"""The PEM files of the gateway's TLS, all of them tried before one is used."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from common.pem_files import PemFileError, check_authorities, check_pair, load_pair, read_pem

_BEGIN: Final = "-----BEGIN CERTIFICATE-----"
_END: Final = "-----END CERTIFICATE-----"


@dataclass(frozen=True, slots=True)
class Contents:
    """What stood in the files."""

    certificate: bytes
    key: bytes
    client_ca: bytes | None

    @property
    def leaf(self) -> bytes:
        """The server's own certificate, DER: the first of the chain."""
        chain = self.certificate.decode()
        begin = chain.index(_BEGIN)
        return ssl.PEM_cert_to_DER_cert(chain[begin : chain.index(_END, begin) + len(_END)])


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: the server's chain and key, and the CA of the gRPC clients where they must show a certificate."""

    certificate: Path
    key: Path
    client_ca: Path | None

    def read(self) -> Contents:
        """Read them all. Raises PemFileError."""
        return Contents(
            read_pem(self.certificate), read_pem(self.key), None if self.client_ca is None else read_pem(self.client_ca)
        )

    def load(self, contents: Contents) -> ssl.SSLContext:
        """Try what was read and return a context that serves it. Raises PemFileError."""
        try:
            context = self._tried(contents)
        except PemFileError:
            # Files are tried where they lie, which one that is just being replaced does not survive.
            if self.read() == contents:
                raise
        else:
            if self.read() == contents:
                return context
        raise PemFileError("the files are being written")

    def _tried(self, contents: Contents) -> ssl.SSLContext:
        check_pair(self.certificate, self.key, contents.certificate, of_server=True)
        if self.client_ca is not None and contents.client_ca is not None:
            check_authorities(self.client_ca, contents.client_ca)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        load_pair(context, self.certificate, self.key)
        return context
