"""Delivers callbacks, each endpoint by itself: one that hangs or is down delays no other.

The rule: docs/callbacks.md#what-the-gateway-does.
"""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

from gateway.callbacks.outbox import delivered, due_endpoints, give_up, next_due, reschedule
from gateway.domain.callbacks import Delivery
from gateway.store.port import Store, StoreUnavailableError
from gateway.sweeps.callback_sender import CallbackSender, SendResult

MAX_ENDPOINTS: Final = 32
"""Endpoints served at the same time, which bounds the bodies in memory."""

_TURN: Final = 100
"""Callbacks that an endpoint gets before another one may have its place."""

_log = logging.getLogger(__name__)


def _jitter() -> float:
    return random.uniform(0.8, 1.2)  # noqa: S311 - spreads the tries, keeps no secret


class CallbackSweep:
    """Looks for endpoints that something is due for and serves each in a task of its own, one callback at a time."""

    name = "callbacks"
    interval = 1.0

    def __init__(
        self,
        store: Store,
        sender: CallbackSender,
        jitter: Callable[[], float] = _jitter,
        on_try: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`on_try` is told what came of each try: `delivered`, `reschedule`, `given_up`."""
        self._store = store
        self._sender = sender
        self._jitter = jitter
        self._on_try = on_try
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._counts: Counter[str] = Counter()

    async def run_once(self) -> Mapping[str, int]:
        """Begin to serve who is not yet served; return what was done since the last look."""
        free = MAX_ENDPOINTS - len(self._serving)
        if free > 0:
            due = await self._store.read(due_endpoints, MAX_ENDPOINTS + len(self._serving))
            for endpoint in [endpoint for endpoint in due if endpoint not in self._serving][:free]:
                self._serving[endpoint] = asyncio.create_task(self._serve(endpoint))
        counts, self._counts = self._counts, Counter()
        return counts

    async def idle(self) -> None:
        """Wait until nobody is served."""
        while self._serving:
            await asyncio.wait(list(self._serving.values()))

    async def close(self) -> None:
        """Break off what is under way; it is tried again by the next process."""
        for task in list(self._serving.values()):
            task.cancel()
        await self.idle()

    async def _serve(self, endpoint: str) -> None:
        """Deliver what is due for an endpoint until it does not take one."""
        try:
            for _ in range(_TURN):
                delivery = await self._store.read(next_due, endpoint)
                if delivery is None or not await self._deliver(delivery):
                    return
        except StoreUnavailableError as error:
            _log.warning("callbacks to %s have to wait: %s", endpoint, error)
        except Exception:  # noqa: BLE001 - it must not stop the other endpoints
            _log.exception("callbacks to %s failed", endpoint)
        finally:
            del self._serving[endpoint]

    async def _deliver(self, delivery: Delivery) -> bool:
        outcome = await self._sender.send(delivery)
        if outcome.taken:
            await self._store.write(delivered, delivery.callback_id, outcome.told)
            self._count("delivered")
            return True
        if outcome.hopeless:
            await self._store.write(give_up, delivery.callback_id, outcome.told)
            self._count("given_up")
        elif await self._store.write(reschedule, delivery.callback_id, outcome.told, self._jitter()):
            self._count("given_up")
        else:
            self._count("reschedule")
            if delivery.attempts == 0:
                self._tell(delivery, outcome)
        return False

    def _count(self, what: str) -> None:
        self._counts[what] += 1
        self._on_try(what)

    def _tell(self, delivery: Delivery, outcome: SendResult) -> None:
        fields = {"callback_id": delivery.callback_id, "endpoint": delivery.endpoint}
        if delivery.task_id is not None:
            fields["task_id"] = delivery.task_id
        _log.warning("a callback is put off: %s", outcome.told, extra=fields)
