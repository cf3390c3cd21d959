"""One wait of a worker, and the lease that ends it until the transport has it."""

import asyncio
from typing import Any, Generic, TypeVar

from gateway.dispatch.lease_source import Request

R = TypeVar("R", bound=Request)
L = TypeVar("L")


class Waiter(Generic[R, L]):
    """A worker's request, and the future of its lease."""

    __slots__ = ("future", "handed_over", "request", "stream_id")

    def __init__(self, request: R) -> None:
        self.request = request
        self.handed_over = False
        self.stream_id = ""
        """What the database knows the stream by, where several gateways share it."""
        self.future: asyncio.Future[L] = asyncio.get_running_loop().create_future()


class Handover(Generic[L]):
    """A lease that waits to be handed to the transport."""

    def __init__(self, waiter: Waiter[Any, L]) -> None:
        self.lease = waiter.future.result()
        self._waiter = waiter

    def mark_delivered(self) -> None:
        """Say that the transport has it now; call this with nothing awaited between the two."""
        self._waiter.handed_over = True
