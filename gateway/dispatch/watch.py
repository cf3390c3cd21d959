"""Watching a task or a query until it ends."""

from collections.abc import AsyncGenerator, Callable
from typing import Protocol, TypeVar

from gateway.dispatch.notifier import Notifier
from gateway.dispatch.stream import HEARTBEAT, HEARTBEAT_SECONDS, Heartbeat, shutting_down
from gateway.domain.instant import Instant
from gateway.domain.refusals import Refusal, RefusedError
from gateway.store.port import ReadTransaction, Store


class Watched(Protocol):
    """What can be watched; two that are equal tell the same."""

    @property
    def has_ended(self) -> bool:
        """Whether a watch has nothing more to wait for."""
        ...


W = TypeVar("W", bound=Watched)


async def watch(
    store: Store,
    notifier: Notifier,
    topic: str,
    get: Callable[[ReadTransaction, Instant, str], W | Refusal],
    key: str,
    *,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
) -> AsyncGenerator[Heartbeat | W]:
    """Yield what `get` finds under `key`, now and after each change, until it has ended; heartbeats in between.

    Raises RefusedError with the refusal of `get`, or SHUTTING_DOWN when the gateway stops.
    """
    with notifier.subscribe(topic) as changes:
        # What was told last is known by its hash alone.
        last: int | None = None
        while True:
            found = await store.read(get, key)
            if isinstance(found, Refusal):
                raise RefusedError(found)
            if hash(found) != last:
                yield found
                last = hash(found)
            if found.has_ended:
                return
            # It may be large, and thousands may wait here.
            del found
            while not await changes.wait(heartbeat_seconds):
                yield HEARTBEAT
            if notifier.closing:
                raise shutting_down()
