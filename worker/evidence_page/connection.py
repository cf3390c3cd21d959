"""A connection of the page's server: one request, whose head comes soon.

Everybody on the machine can connect, and a connection takes one of few places before it has shown the key.
"""

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""From the connection to the end of its request's head."""


class PromptH11(H11Protocol):
    """uvicorn's protocol, which drops a client that does not say what it wants. The guard's answers close it."""

    _head_due: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, and wait for the head."""
        super().connection_made(transport)
        self._head_due = self.loop.call_later(HEAD_SECONDS, transport.abort)

    def data_received(self, data: bytes) -> None:
        """Take bytes."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._head_due.cancel()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._head_due.cancel()
        super().connection_lost(exc)
