"""Takes the connections of the HTTP port: counted from the first moment, before TLS, and small until somebody is known.

asyncio's own server counts nothing before a handshake has ended, and lets a first message of 128 KiB grow for a minute.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final, Protocol

HANDSHAKE_SECONDS: Final = 10.0
"""How long a TLS handshake may take, from the connection on; its first message may take as long again."""

MAX_HELLO_BYTES: Final = 16 * 1024
"""The largest first message of a handshake: one record. Those of browsers have two thousand bytes."""

MAX_STRANGERS: Final = 1_000
"""How many connections may be open that have shown no token yet; one more, and the oldest of them is cut off."""

STRANGERS_BUFFER_BYTES: Final = 16 * 1024
"""What the kernel is asked to keep of what a stranger sends (it doubles that), and so the most that is read at once:
TLS copies it twice, into buffers that never shrink."""

RECEIVE_BUFFER_BYTES: Final = 128 * 1024
"""The same of a client that is known."""

SEND_BUFFER_BYTES: Final = 256 * 1024
"""What the kernel keeps of an answer that is not read."""

_BACKLOG: Final = 2048
_ACCEPTED_A_TURN: Final = 32
_NO_FILES_LEFT_SECONDS: Final = 0.1
_HANDSHAKE_RECORD: Final = 22
_HEAD_BYTES: Final = 9
"""A record's head (5 bytes) and the handshake message's in it (4)."""

_log = logging.getLogger(__name__)


class Served(Protocol):
    """What serves a connection: asyncio's protocol, and what is known of its peer."""

    on_known: Callable[[], None]
    on_end: Callable[[], None]


def bound_socket(host: str, port: int) -> socket.socket:
    """Listen. Raises OSError if the address cannot be bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=_BACKLOG)
    listening.setblocking(False)
    # Connections inherit both; later it would not bound what a client has sent already.
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STRANGERS_BUFFER_BYTES)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    return listening


class Listener:
    """Accepts up to `most` connections, each with a protocol that `serve` makes."""

    def __init__(
        self, listening: socket.socket, tls: ssl.SSLContext | None, most: int, serve: Callable[[], Served]
    ) -> None:
        self._listening = listening
        self._tls = tls
        self._most = most
        self._serve = serve
        self._loop = asyncio.get_running_loop()
        self._open: set[_Connection] = set()
        self._strangers: dict[_Connection, None] = {}
        self._handshakes: set[asyncio.Task[None]] = set()
        self._loop.add_reader(listening.fileno(), self._accept)

    def close(self) -> None:
        """Take no more connections, and end the handshakes."""
        self._loop.remove_reader(self._listening.fileno())
        for handshake in self._handshakes:
            handshake.cancel()

    async def wait_closed(self) -> None:
        """Wait for the handshakes' end."""
        await asyncio.gather(*self._handshakes, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_A_TURN):
            try:
                accepted, _ = self._listening.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                _log.error("no connection can be taken just now: %s", error.strerror)
                self._loop.remove_reader(self._listening.fileno())
                self._loop.call_later(_NO_FILES_LEFT_SECONDS, self._accept_again)
                return
            if len(self._open) >= self._most:
                accepted.close()
                continue
            self._begin(accepted)

    def _accept_again(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening.fileno(), self._accept)

    def _begin(self, accepted: socket.socket) -> None:
        connection = _Connection()
        self._open.add(connection)
        self._strangers[connection] = None
        if len(self._strangers) > MAX_STRANGERS:
            oldest = next(iter(self._strangers))
            del self._strangers[oldest]
            oldest.cut_off()
        task = connection.handshake = asyncio.create_task(self._shake_hands(accepted, connection))
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, accepted: socket.socket, connection: "_Connection") -> None:
        def serve() -> asyncio.Protocol:
            protocol = self._serve()
            protocol.on_known = lambda: self._known(accepted, connection)
            protocol.on_end = lambda: self._ended(connection)
            return protocol  # type: ignore[return-value]

        accepted.setblocking(False)
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                async with asyncio.timeout(HANDSHAKE_SECONDS):
                    await _small_hello(accepted)
            connection.transport, _ = await self._loop.connect_accepted_socket(
                serve, accepted, ssl=self._tls,
                ssl_handshake_timeout=None if self._tls is None else HANDSHAKE_SECONDS,
            )  # fmt: skip
        except (OSError, TimeoutError):
            accepted.close()
            self._ended(connection)
        except BaseException:
            accepted.close()
            self._ended(connection)
            raise

    def _known(self, accepted: socket.socket, connection: "_Connection") -> None:
        if connection in self._strangers:
            del self._strangers[connection]
            accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)

    def _ended(self, connection: "_Connection") -> None:
        self._open.discard(connection)
        self._strangers.pop(connection, None)
        # The transport knows its protocol, which knows the connection: a circle that would keep its buffers.
        connection.transport = connection.handshake = None


class _Connection:
    """A connection, in its handshake or served."""

    transport: Any = None
    handshake: asyncio.Task[None] | None = None

    def cut_off(self) -> None:
        """End it at once."""
        if self.transport is not None:
            self.transport.abort()
        elif self.handshake is not None:
            self.handshake.cancel()


async def _small_hello(accepted: socket.socket) -> None:
    """Wait for the begin of a handshake, and look at how long its first message is to be. Raises OSError."""
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[None] = loop.create_future()
    # The socket counts as readable once the whole head has come, or nothing more will.
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, _HEAD_BYTES)

    def tell() -> None:
        if not arrived.done():
            arrived.set_result(None)

    loop.add_reader(accepted.fileno(), tell)
    try:
        await arrived
    finally:
        loop.remove_reader(accepted.fileno())
    head = accepted.recv(_HEAD_BYTES, socket.MSG_PEEK)
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)
    is_handshake = len(head) == _HEAD_BYTES and head[0] == _HANDSHAKE_RECORD
    if is_handshake and int.from_bytes(head[6:]) > MAX_HELLO_BYTES:
        raise ConnectionAbortedError("the first message of the handshake is too long")
