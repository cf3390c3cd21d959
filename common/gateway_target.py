"""The gateway's address as workers and commands are given it."""

from typing import Final
from urllib.parse import urlsplit

from common.settings import PREFIX, is_loopback

DEFAULT_GRPC_PORT: Final = 31110

FORMER_NAME: Final = f"The former name of {PREFIX}ORDER_GATEWAY_URL, still read where that is not set."
RENAME: Final = (
    f"{PREFIX}GATEWAY_URL is the former name of {PREFIX}ORDER_GATEWAY_URL: rename it, the value stays the same"
)
_TLS: Final = {"grpc": False, "http": False, "grpcs": True, "https": True}


class GatewayTarget:
    """Where the gateway is: `address` as host:port for a channel, and whether the way there is encrypted (`tls`).

    Raises ValueError for a text that is no such URL.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in _TLS or not parts.hostname:
            raise ValueError("must look like grpc://host:port or grpcs://host:port")
        if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
            raise ValueError("must hold nothing but scheme, host and port")
        self.tls = _TLS[parts.scheme]
        self.host = parts.hostname
        self.port = DEFAULT_GRPC_PORT if parts.port is None else parts.port
        host = f"[{self.host}]" if ":" in self.host else self.host
        self.address = f"{host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """True if the traffic does not leave this machine."""
        return is_loopback(self.host)
