"""How the gateway is: what the database tells, and whether it has just taken a write."""

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from gateway.domain.health import Health, Problem, ProblemKind
from gateway.domain.instant import Instant
from gateway.domain.models import Policy
from gateway.operations.problems import health_with_problems
from gateway.store.port import Store, StoreUnavailableError, Transaction

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
        *,
        has_webhook: bool = False,
        backup_alert: timedelta | None = None,
    ) -> None:
        """`touch`: see Readiness. `has_webhook`, `backup_alert`: see health_with_problems."""
        self._store = store
        self._policy = policy
        self.readiness = Readiness(store, touch)
        self._has_webhook = has_webhook
        self._backup_alert = backup_alert

    async def look(self) -> Health:
        """Return how the gateway is. Raises StoreUnavailableError where the database cannot even be read."""
        writable = await self.readiness.is_ready()
        found = await self._store.read(
            health_with_problems, self._policy, has_webhook=self._has_webhook, backup_alert=self._backup_alert
        )
        if writable:
            return found
        words = "the database takes no writes, so nothing is filed, leased or reported; see the log, and the disk"
        return found.with_problems([Problem(ProblemKind.STORE_NOT_WRITABLE, words), *found.problems])
