"""HTTP/1.1 on a connection, with a limit on how slow a client may be; protocol errors are told in the envelope too."""

import asyncio
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, cast

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from gateway.api.auth.admission import ON_KNOWN
from gateway.api.http.framing import FramingError, StrictConnection
from gateway.api.rest.envelope import envelope

HEADER_SECONDS: Final = 10.0
"""From the first byte (or the connection) to the end of the headers."""

UNREAD_SECONDS: Final = 30.0
"""How long a client may leave its answer unread once the buffers are full."""

MAX_UNREAD: Final = 64
"""How many answers may lie unread at once; one more, and the one that has lain there for longest is cut off."""

LINGER_SECONDS: Final = 2.0
"""How long the rest of a refused body is thrown away, so that the client gets to read the refusal."""

MAX_HEADER_BYTES: Final = 16 * 1024


_WORDS: Final = {
    400: "this is no valid HTTP/1.1 request",
    431: "the headers are too large",
    501: "the transfer encoding is not known here",
}


class _Transport:
    """A connection's transport whose `close` is its protocol's; everything else is passed on.

    uvicorn closes the transport itself when a client has asked for that, in the middle of a body that was refused.
    """

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.connection = transport
        self.close = close

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


class BoundedH11(H11Protocol):
    """uvicorn's protocol with timers, which tells its listener when its client is known, and when it ends."""

    on_known: Callable[[], None]
    on_end: Callable[[], None]
    _headers_due: asyncio.TimerHandle | None = None
    _reading_due: asyncio.TimerHandle | None = None
    _lingering: asyncio.TimerHandle | None = None
    _refused = False

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        # All connections of a server share what they know of those that do not read.
        self._unread: dict[BoundedH11, None] = vars(server_state).setdefault("unread", {})
        self.conn = StrictConnection(MAX_HEADER_BYTES, self._body_is_through)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and wait for headers."""
        self._transport = transport
        self._told = _Transport(transport, self._close)
        super().connection_made(cast(asyncio.Transport, self._told))
        self.app_state[ON_KNOWN] = self.on_known
        self._expect_headers()

    def data_received(self, data: bytes) -> None:
        """Take bytes, or throw them away after a refusal."""
        if self._refused:
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            _cancel(self._headers_due)
            self._headers_due = None
        elif self.conn.trailing_data[0]:
            self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._body_is_through()
        self._unread.pop(self, None)
        for timer in (self._headers_due, self._reading_due):
            _cancel(timer)
        self.on_end()
        super().connection_lost(exc)
        # They know this protocol, and it the transport: circles that would keep its buffers until they are collected.
        self._told.close = _nothing
        self.cycle = None  # type: ignore[assignment]
        self.conn = StrictConnection(MAX_HEADER_BYTES, _nothing)

    def on_response_complete(self) -> None:
        """Go on, or throw away what is left of a body that was refused."""
        if self.conn.their_state is h11.SEND_BODY and not self._refused:
            self._lingering = self.loop.call_later(LINGER_SECONDS, self.transport.abort)
        super().on_response_complete()
        if self.cycle is not None and self.cycle.response_complete:
            # The cycle stays until the next request; what it has got of a body that nobody wanted need not.
            self.cycle.body = bytearray()

    def pause_writing(self) -> None:
        """Wait for a client that does not read."""
        super().pause_writing()
        self._reading_due = self.loop.call_later(UNREAD_SECONDS, self.transport.abort)
        self._unread[self] = None
        if len(self._unread) > MAX_UNREAD:
            next(iter(self._unread)).transport.abort()

    def resume_writing(self) -> None:
        """Write on."""
        _cancel(self._reading_due)
        self._unread.pop(self, None)
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP request, with the status that h11 gives it: 400, 431 or 501."""
        error = sys.exc_info()[1]
        status = getattr(error, "error_status_hint", 400)
        words = str(error) if isinstance(error, FramingError) else _WORDS.get(status, _WORDS[400])
        body = envelope(success=False, message=words, data=None, code=status)
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            response = h11.Response(status_code=status, headers=headers, reason=HTTPStatus(status).phrase)
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        self._close_when_through()

    def _close(self) -> None:
        """Close the connection; while a body still comes, not before its client can have read the answer."""
        if self.conn.their_state is h11.SEND_BODY and not self._refused:
            self._close_when_through()
        else:
            self._transport.close()

    def _close_when_through(self) -> None:
        """Throw away what still comes: closed at once, the connection would be reset, and the answer with it."""
        self._refused = True
        if self._transport.can_write_eof():
            self._transport.write_eof()
        self._lingering = self.loop.call_later(LINGER_SECONDS, self._transport.close)

    def _body_is_through(self) -> None:
        """Keep the connection: what was left of a refused body has come, or the connection is at its end anyway."""
        _cancel(self._lingering)
        self._lingering = None

    def _expect_headers(self) -> None:
        if self._headers_due is None:
            self._headers_due = self.loop.call_later(HEADER_SECONDS, self.transport.abort)


def _nothing() -> None:
    pass


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
