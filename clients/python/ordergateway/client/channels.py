"""The way to a gateway: address, TLS and the options of a channel."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import grpc

DEFAULT_PORT: Final = 31110
MAX_ANSWER_BYTES: Final = 128 * 1024 * 1024

OPTIONS: Final[tuple[tuple[str, int], ...]] = (
    # A dead peer is noticed within 15 s. The four work only together, and the gateway bears a ping every 10 s, no more.
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.max_receive_message_length", MAX_ANSWER_BYTES),
    # A channel without a gateway tries again soon: the client has a backoff of its own.
    ("grpc.initial_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    # The contract says which call may be repeated; the channel must not repeat on its own account.
    ("grpc.enable_retries", 0),
    # What HTTP_PROXY names is nobody whom the caller knows, and need not be shown a token.
    ("grpc.enable_http_proxy", 0),
)


@dataclass(frozen=True, slots=True)
class Tls:
    """TLS files, PEM. None: the system's authorities, no certificate of one's own."""

    authorities: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None

    def credentials(self) -> grpc.ChannelCredentials:
        """Return them as gRPC takes them."""
        return grpc.ssl_channel_credentials(self.authorities, self.key, self.certificate)


@dataclass(frozen=True, slots=True)
class Target:
    """Where a gateway is: `address` as host:port, and whether the way there is encrypted."""

    address: str
    encrypted: bool


def target(url: str, *, shows_token: bool, plain_text: bool) -> Target:
    """Read `grpc://host[:port]` or `grpcs://host[:port]`, which is TLS.

    Raises ValueError for another text, and where a token would travel in plain text to another machine, unless
    `plain_text` allows it.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("grpc", "grpcs") or not parts.hostname:
        raise ValueError(f"the gateway's address must look like grpc://host:port or grpcs://host:port, not {url!r}")
    if parts.path not in ("", "/") or parts.query or parts.fragment or parts.username is not None:
        raise ValueError("the gateway's address must hold nothing but scheme, host and port")
    encrypted = parts.scheme == "grpcs"
    if shows_token and not encrypted and not plain_text and not _is_loopback(parts.hostname):
        raise ValueError(f"the token would travel in plain text to {parts.hostname}: use grpcs://, or plain_text=True")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return Target(f"{host}:{parts.port or DEFAULT_PORT}", encrypted)


def blocking_channel(where: Target, tls: Tls | None) -> grpc.Channel:
    """Return a channel. Nothing is sent before the first call."""
    if not where.encrypted:
        return grpc.insecure_channel(where.address, options=OPTIONS)
    return grpc.secure_channel(where.address, (tls or Tls()).credentials(), options=OPTIONS)


def aio_channel(where: Target, tls: Tls | None) -> grpc.aio.Channel:
    """Return a channel of asyncio. Nothing is sent before the first call."""
    if not where.encrypted:
        return grpc.aio.insecure_channel(where.address, options=OPTIONS)
    return grpc.aio.secure_channel(where.address, (tls or Tls()).credentials(), options=OPTIONS)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
