"""Which addresses a callback may be sent to, judged on the address itself before anything is connected (section 7).

Upstreams live next door, so loopback and private addresses are allowed. Link-local ones, and the few others under which
clouds serve the credentials of a machine, are not, in whatever form a URL hides them: names are resolved first, and so
are the decimal, octal and hexadecimal forms of an IPv4 address; addresses within an address are unpacked.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

MAX_LOOKUPS: Final = 64
"""Names looked up at the same time; a look-up cannot be broken off, so those that hang count on."""

_METADATA: Final = frozenset(
    map(
        ip_address,
        (
            "100.100.100.200",  # Alibaba Cloud
            "168.63.129.16",  # Azure
            "192.0.0.192",  # Oracle Cloud
            "fd00:ec2::254",  # AWS
            "fd20:ce::254",  # Google Cloud
            "fd00:42::42",  # Scaleway
        ),
    )
)
_NAT64: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE: Final = IPv6Network("::/96")
_THIS_NETWORK: Final = ip_network("0.0.0.0/8")


class AddressRefusedError(Exception):
    """A callback must not be sent there; the message says why, without the address."""


def check_address(text: str) -> None:
    """Raise AddressRefusedError unless a callback may be sent to this address."""
    for address in _with_embedded(ip_address(text)):
        if address in _METADATA:
            raise AddressRefusedError("the host is a cloud's metadata service")
        if address.is_link_local:
            raise AddressRefusedError("the host has a link-local address")
        if address.is_unspecified or address in _THIS_NETWORK:
            raise AddressRefusedError("the host has an unspecified address")
        if address.is_multicast or (isinstance(address, IPv4Address) and address.is_reserved):
            raise AddressRefusedError("the host has a multicast or reserved address")


def _with_embedded(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Yield the address and the IPv4 addresses that it leads to."""
    if isinstance(address, IPv4Address):
        yield address
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
        return
    # A scope names an interface of this machine; the address is judged without it.
    address = IPv6Address(int(address))
    yield address
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if any(address in network for network in _NAT64) or (address in _COMPATIBLE and int(address) > 1):
        yield IPv4Address(int(address) & 0xFFFF_FFFF)


class Resolver:
    """Finds the addresses of a host. Look-ups run in threads that hold up neither the loop nor the process's end."""

    def __init__(self) -> None:
        self._running = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses, the preferred one first. Raises OSError if there is none."""
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            found = await self._look_up(host, port)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def _look_up(self, host: str, port: int) -> Any:
        if self._running >= MAX_LOOKUPS:
            raise OSError("too many names are being looked up")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()

        def tell(found: Any, error: OSError | UnicodeError | None) -> None:
            self._running -= 1
            if answer.done():
                return
            if error is None:
                answer.set_result(found)
            else:
                answer.set_exception(OSError(f"cannot be resolved: {type(error).__name__}"))

        def work() -> None:
            found, error = None, None
            try:
                found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError) as failure:
                error = failure
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(tell, found, error)

        self._running += 1
        threading.Thread(target=work, name="callback-lookup", daemon=True).start()
        return await answer
