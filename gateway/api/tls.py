"""The certificate of both ports, taken anew when its files change, so that a renewal needs no restart."""

import logging
import ssl
from collections.abc import Mapping
from typing import Final

from common.pem_files import PemFileError
from gateway.api.grpc.renewal import GrpcCertificate, RenewalError
from gateway.api.tls_files import TlsFiles

CHECK_SECONDS: Final = 1.0
"""How often the files are looked at."""

_log = logging.getLogger(__name__)


class Certificates:
    """Hands the current certificate to every new connection. It has the shape of a sweep, which watches the files."""

    name = "certificates"
    interval = CHECK_SECONDS

    def __init__(self, files: TlsFiles) -> None:
        """Raises PemFileError."""
        self._files = files
        self._contents = files.read()
        self._current = self.http = files.load(self._contents)
        """The HTTP port's context: it passes each connection on to the current one."""
        self.http.sni_callback = self._choose
        self.grpc = GrpcCertificate(self._contents)
        self._met = self._told = ""

    async def run_once(self) -> Mapping[str, int]:
        """Take the files anew if they have changed and can be used; else keep what there is."""
        try:
            contents = self._files.read()
            if contents == self._contents:
                self._met = self._told = ""
                return {}
            context = self._files.load(contents)
            await self.grpc.renew(contents)
        except (PemFileError, RenewalError) as error:
            # A renewal replaces one file after the other, so it is told only if it is so at the next look, too.
            why = str(error)
            if why == self._met and why != self._told:
                _log.warning("the certificate in use stays: %s", why)
                self._told = why
            self._met = why
            return {}
        self._current, self._contents = context, contents
        self._met = self._told = ""
        return {"renewed": 1}

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
        connection.context = self._current
