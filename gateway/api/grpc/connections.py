"""Ends a connection of the gRPC port from inside: grpc.aio has no way to reset a stream whose answer nobody takes."""

import contextlib
import os
import socket
from pathlib import Path
from typing import Final
from urllib.parse import unquote

_INTERNET: Final = (socket.AF_INET, socket.AF_INET6)
_IPV4_IN_IPV6: Final = "::ffff:"
_OPEN_FILES: Final = Path("/dev/fd")


def cut_off(peer: str, port: int) -> bool:
    """Shut down the connection that `peer` (as grpc writes it: `ipv4:127.0.0.1:5000`) has with `port`; tell whether.

    It looks through the process's open files, so it belongs into a thread.
    """
    host, _, peer_port = unquote(peer).partition(":")[2].rpartition(":")
    wanted = host.strip("[]"), int(peer_port)
    return any(_is_shut_down(int(file.name), wanted, port) for file in _OPEN_FILES.iterdir())


def _is_shut_down(number: int, wanted: tuple[str, int], port: int) -> bool:
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
    with contextlib.suppress(OSError), found:
        if found.family in _INTERNET and found.getsockname()[1] == port and _peer_of(found) == wanted:
            found.shutdown(socket.SHUT_RDWR)
            return True
    return False


def _peer_of(connection: socket.socket) -> tuple[str, int]:
    host, port = connection.getpeername()[:2]
    # grpc listens for both families at once, and writes such an address without its prefix.
    return host.removeprefix(_IPV4_IN_IPV6), port
