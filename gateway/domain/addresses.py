"""Which addresses a callback may be sent to (docs/callbacks.md#what-the-gateway-does), judged on the address itself.

Upstreams live next door, so loopback and private addresses are allowed. Link-local ones, and the few others under which
clouds serve the credentials of a machine, are not, in whatever form a URL hides them: an IPv4 address written as one
number, in octal or in hexadecimal (inet_aton), or carried within an IPv6 address by any of the known translations.
"""

import re
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

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
_THIS_NETWORK: Final = ip_network("0.0.0.0/8")
_COMPATIBLE: Final = IPv6Network("::/96")  # RFC 4291, 2.5.5.1
_TRANSLATED: Final = IPv6Network("::ffff:0:0:0/96")  # RFC 2765, SIIT
_NAT64: Final = IPv6Network("64:ff9b::/96")  # RFC 6052
_NAT64_LOCAL: Final = IPv6Network("64:ff9b:1::/48")  # RFC 8215
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})  # RFC 5214, 6.1
_LAST_32: Final = 0xFFFF_FFFF

_ATON_PART: Final = re.compile(r"0[xX][0-9a-fA-F]*|0[0-7]*|[1-9][0-9]*", re.ASCII)
_ATON_PARTS: Final = 4


class AddressRefusedError(Exception):
    """A callback must not be sent there; the message says why, without the address."""


def check_address(address: IPv4Address | IPv6Address) -> None:
    """Raise AddressRefusedError unless a callback may be sent to this address."""
    for each in _with_embedded(address):
        if each in _METADATA:
            raise AddressRefusedError("the host is a cloud's metadata service")
        if each.is_link_local:
            raise AddressRefusedError("the host has a link-local address")
        if each.is_unspecified or each in _THIS_NETWORK:
            raise AddressRefusedError("the host has an unspecified address")
        if each.is_multicast or (isinstance(each, IPv4Address) and each.is_reserved):
            raise AddressRefusedError("the host has a multicast or reserved address")


def inet_aton(host: str) -> IPv4Address | None:
    """Return the IPv4 address that a host of a URL is by itself, as the resolver reads it; None if it is a name.

    1 to 4 numbers, each decimal, octal or hexadecimal, of which the last fills up what is left.
    """
    parts = host.removesuffix(".").split(".")
    if len(parts) > _ATON_PARTS or not all(_ATON_PART.fullmatch(part) for part in parts):
        return None
    *first, last = (_number(part) for part in parts)
    rest = 8 * (_ATON_PARTS - len(first))
    if any(each > 0xFF for each in first) or last >> rest:  # noqa: PLR2004 - an octet
        return None
    return IPv4Address(sum(each << (24 - 8 * place) for place, each in enumerate(first)) | last)


def _number(part: str) -> int:
    if part[:2].lower() == "0x":
        return int(part[2:] or "0", 16)
    return int(part, 8 if part.startswith("0") else 10)


def _with_embedded(address: IPv4Address | IPv6Address) -> Iterator[IPv4Address | IPv6Address]:
    """Yield the address and the IPv4 addresses that it may lead to."""
    if isinstance(address, IPv4Address):
        yield address
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
        return
    # A scope names an interface of this machine; the address is judged without it.
    number = int(address)
    address = IPv6Address(number)
    yield address
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    last = number & _LAST_32
    carried = address in _NAT64 or address in _TRANSLATED or (address in _COMPATIBLE and number > 1)
    if carried or (number >> 32) & _LAST_32 in _ISATAP:
        yield IPv4Address(last)
    if address in _NAT64_LOCAL:
        yield from (IPv4Address(each) for each in _local_nat64(number) if each >> 24)


def _local_nat64(number: int) -> Iterator[int]:
    """Yield what a prefix of 48, 56, 64 or 96 bits would carry (RFC 6052, 2.2); the octet at bit 64 is left out."""
    yield (number >> 64 & 0xFFFF) << 16 | number >> 40 & 0xFFFF
    yield (number >> 64 & 0xFF) << 24 | number >> 32 & 0xFF_FFFF
    yield number >> 24 & _LAST_32
    yield number & _LAST_32
