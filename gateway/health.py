"""How the gateway is: what the database tells, and whether it has just taken a write."""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from gateway.domain.health import Health, Problem, ProblemKind
from gateway.domain.instant import Instant
from gateway.domain.models import Policy
from gateway.operations.gateways import problems_of_gateways
from gateway.operations.problems import health_with_problems
from gateway.store.gateways import Gateways
from gateway.store.port import ReadTransaction, Store, StoreUnavailableError, Transaction

_FRESH_SECONDS: Final = 1.0
_WRITE_SECONDS: Final = 3.0


class Readiness:
    """Knows whether the database takes writes: it tries one, at most once a second however often it is asked."""

    def __init__(self, store: Store, touch: Callable[[Transaction, Instant], None]) -> None:
        """`touch` is a write that does no harm."""
        self._store = store
        self._touch = touch
        self._tried_at = -_FRESH_SECONDS
        self._ready = False
        self._trying = asyncio.Lock()

    async def is_ready(self) -> bool:
        """Tell whether the last try, at most a second ago, was written."""
        async with self._trying:
            if time.monotonic() - self._tried_at >= _FRESH_SECONDS:
                self._ready = await self._try()
                self._tried_at = time.monotonic()
            return self._ready

    async def _try(self) -> bool:
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                await self._store.write(self._touch)
        except (StoreUnavailableError, TimeoutError):
            return False
        return True


class HealthCheck:
    """Looks at everything that can fail without a word."""

    def __init__(
        self,
        store: Store,
        policy: Policy,
        touch: Callable[[Transaction, Instant], None],
        gateways: Gateways,
        waiting: Callable[[], int],
        *,
        has_webhook: bool = False,
        channels: Sequence[str] = (),
        backup_alert: timedelta | None = None,
    ) -> None:
        """`touch`: see Readiness. `waiting`: how many streams and long polls are open. `has_webhook`, `channels`,
        `backup_alert`: see health_with_problems.
        """
        self._store = store
        self._policy = policy
        self._gateways = gateways
        self._waiting = waiting
        self.readiness = Readiness(store, touch)
        self._has_webhook = has_webhook
        self._channels = channels
        self._backup_alert = backup_alert

    async def look(self) -> Health:
        """Return how the gateway is. Raises StoreUnavailableError where the database cannot even be read."""
        own = self._gateways.problems()
        if not await self.readiness.is_ready():
            words = "the database takes no writes, so nothing is filed, leased or reported; see the log, and the disk"
            own = (Problem(ProblemKind.STORE_NOT_WRITABLE, words), *own)
        return await self._store.read(self._find, own, self._waiting())

    def _find(self, tx: ReadTransaction, now: Instant, own: tuple[Problem, ...], waiting: int) -> Health:
        found = health_with_problems(
            tx,
            now,
            self._policy,
            has_webhook=self._has_webhook,
            channels=self._channels,
            backup_alert=self._backup_alert,
        )
        fellows = self._gateways.seen(tx, now, waiting, own)
        return found.with_fellows(fellows).with_problems([*own, *problems_of_gateways(fellows), *found.problems])
