"""Ends connections of the gRPC port from inside: grpc.aio cannot end a call whose answer nobody takes.

Neither `abort` nor cancelling the handler frees such an answer: the status waits behind it, for the same window
(docs/adr/0018-an-untaken-answer-costs-its-connection.md).
"""

import contextlib
import os
import socket
from collections.abc import Collection
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)
_IPV4_IN_IPV6: Final = "::ffff:"
_OPEN_FILES: Final = Path("/dev/fd")


def cut_off(peers: Collection[str], port: int) -> int:
    """Shut down the connections that `peers` (as grpc writes them: `ipv4:127.0.0.1:5000`) have with `port`.

    Returns how many were found. It looks through the process's open files, so it belongs into a thread.
    """
    wanted = {_address_of(peer) for peer in peers}
    return sum(_is_shut_down(int(file.name), wanted, port) for file in _OPEN_FILES.iterdir())


def _address_of(peer: str) -> tuple[str, int]:
    host, _, port = unquote(peer).partition(":")[2].rpartition(":")
    return host.strip("[]"), int(port)


def _is_shut_down(number: int, wanted: Collection[tuple[str, int]], port: int) -> bool:
    # A file may be closed, and its number taken by another, between any two steps; a copy of it stays what it is.
    try:
        copy = os.dup(number)
    except OSError:
        return False
    try:
        found = socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        return False
    with found, contextlib.suppress(OSError):
        if found.family in _INTERNET and found.getsockname()[1] == port and _peer_of(found) in wanted:
            found.shutdown(socket.SHUT_RDWR)
            return True
    return False


def _peer_of(connection: socket.socket) -> tuple[str, int]:
    host, port = connection.getpeername()[:2]
    # grpc listens for both families at once, and writes such an address without its prefix.
    return host.removeprefix(_IPV4_IN_IPV6), port
