"""What request bodies may hold of the memory, over all connections of the HTTP port."""

import asyncio
from datetime import timedelta
from typing import Final

from starlette.types import Message, Receive

from gateway.domain.refusals import Reason, Refusal, RefusedError

SMALL_BYTES: Final = 64 * 1024
"""A body up to this size is always taken, so that renewals and reports go on while others send large ones."""

MAX_BYTES: Final = 64 * 1024 * 1024
"""How much all bodies that are being served may hold before another large one is refused."""


class Bodies:
    """Counts the bytes of the bodies that are being read or served."""

    def __init__(self) -> None:
        self.held = 0
        self.turns = asyncio.Lock()

    def counted(self, receive: Receive) -> "Body":
        """Return the body of a request that is received with `receive`."""
        return Body(self, receive)


class Body:
    """The body of one request, counted from its arrival until `release`."""

    def __init__(self, all_bodies: Bodies, receive: Receive) -> None:
        self._all = all_bodies
        self._receive = receive
        self._size = self._counted = 0

    async def receive(self) -> Message:
        """Receive the request. Raises RefusedError TOO_MANY where there is no room for a large body."""
        message = await self._receive()
        arrived = len(message.get("body", b""))
        self._size += arrived
        self._counted += arrived
        self._all.held += arrived
        if self._size > SMALL_BYTES and self._all.held > MAX_BYTES:
            why = "too many large requests are being sent at the same time; send it again"
            raise RefusedError(Refusal(Reason.TOO_MANY, why, retry_after=timedelta(seconds=1)))
        if self._size > SMALL_BYTES and not message.get("more_body", False):
            # What is done with a large one takes a while; in between everybody else has their turn.
            async with self._all.turns:
                await asyncio.sleep(0)
        return message

    def release(self) -> None:
        """Count it no longer: an answer begins, or the request is over."""
        self._all.held -= self._counted
        self._counted = 0
