"""How a gateway joins a database that others may use: is it the one it was, and do all agree on the rules?

The rule: docs/specification.md#restore; how a database is recognised: docs/adr/0022-a-restore-is-recognised.md.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable
from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.models import Actor, Standby
from gateway.operations.restore import mark_restored
from gateway.orders.history import record_general
from gateway.store.port import Store, Transaction
from gateway.store.postgres import life

WITNESS_SECONDS: Final = 10.0
"""How long a gateway that starts after a promotion waits for one that was there before, to say that nothing is lost."""

NEXT: Final = (
    "look at `order-gateway decisions` and at `order-worker journal list` of each worker, then "
    "`order-gateway resume --reason ...` (docs/postgresql.md#after-a-restore)"
)

_LOOK_AGAIN_SECONDS: Final = 0.2

_log = logging.getLogger(__name__)


class Joining:
    """Joins for one gateway. `agree` notes that it starts, and returns in what its settings differ from another's."""

    def __init__(self, agree: Callable[[Transaction, Instant], str | None], standby: Standby) -> None:
        self._agree = agree
        self._standby = standby

    async def join(self, store: Store) -> str | None:
        """Join, and return in what the settings differ from those of another gateway. Raises StoreUnavailableError."""
        if self._standby is Standby.SYNCHRONOUS:
            await _await_witness(store)
        return await store.write(self._begin)

    def _begin(self, tx: Transaction, now: Instant) -> str | None:
        change = life.recognise(tx)
        if change is not None:
            opened = restored(tx, now, change.value, Actor("restore"))
            _log.warning(
                "the database was restored from %s: dispatch is paused, and %d open tasks count as permitted; next: %s",
                change.value,
                opened,
                NEXT,
            )
        else:
            life.claim(tx)
        return self._agree(tx, now)


def restored(tx: Transaction, now: Instant, what: str, actor: Actor) -> int:
    """Mark the database as restored from `what`, and as the one it is now; return how many tasks were open."""
    opened = mark_restored(tx, now, what, actor, lambda: secrets.token_urlsafe(32))
    life.claim(tx)
    return opened


def adopt(tx: Transaction, now: Instant, reason: str, actor: Actor) -> str | None:
    """Take a database that was moved on purpose and lacks nothing for the one it was; return what it has become."""
    change = life.recognise(tx)
    if change is None:
        return None
    record_general(tx, now, "adopt_database", actor, reason=f"{change.value}: {reason}")
    life.claim(tx)
    return change.value


async def _await_witness(store: Store) -> None:
    """Give a gateway that was there before the promotion time to say so: it alone knows that nothing is missing."""
    until = time.monotonic() + WITNESS_SECONDS
    while time.monotonic() < until:
        change = await store.read(lambda tx, _now: life.recognise(tx))
        if change is not life.Change.OTHER_TIMELINE:
            return
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
