"""The order loop: one order at a time, from the lease to its end, for as long as the worker runs.

`reclaim request? reclaim : room on disk? lease : wait` -> journal -> acknowledge -> execute. No fault leaves it.
"""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

from ordergateway.v1 import errors_pb2

from worker.account_lock import AccountLocks
from worker.clock import Entropy
from worker.gateway.backoff import Backoff
from worker.gateway.bounds import TURN
from worker.gateway.port import BAD_CREDENTIALS, InvalidAnswer, Refused, Unreachable
from worker.journal.records import ReclaimRequest, ReclaimStatus
from worker.orders.intake import Intake, InTrace, not_traced
from worker.orders.parts import Parts
from worker.racing import race
from worker.sites.port import Site, sites_that_can_order

_log = logging.getLogger(__name__)
T = TypeVar("T")

FIRST_DELAY = 0.5
MOST_DELAY = 30.0
CREDENTIALS_DELAY = 30.0
DISK_DELAY = 30.0
# With no site to order on nothing is leased; the way to the gateway is still looked at.
PROBE_DELAY = 30.0
RECLAIM_POLL = 0.5
# While a reclaim waits for another task to end, streams are short, so that it is tried again soon.
SHORT_WAIT = 2.0


class OrderLoop:
    """Takes orders and executes them, one after the other."""

    def __init__(
        self,
        parts: Parts,
        sites: Sequence[Site],
        accounts: AccountLocks,
        entropy: Entropy,
        *,
        lease_wait: float,
        stopping: asyncio.Event,
        in_trace: InTrace = not_traced,
    ) -> None:
        self._parts = parts
        self._names = sites_that_can_order(sites)
        self._intake = Intake(parts, sites, accounts, entropy, stopping=stopping, in_trace=in_trace)
        self._lease_wait = lease_wait
        self._stopping = stopping
        self._backoff = Backoff(entropy, first=FIRST_DELAY, most=MOST_DELAY)
        self._obstacle_told = False
        self._reclaim_in_progress = True  # perhaps, of a process that is gone

    async def run(self) -> None:
        """Run until the worker is stopped. An order in hand is left safely, see `execution`."""
        while not self._stopping.is_set():
            begun = self._parts.clock.elapsed()
            try:
                if not await self._turn():
                    await self._pause(TURN.least - (self._parts.clock.elapsed() - begun))
            except InvalidAnswer as error:
                await self._wait_after("nothing is taken", error)
            except Unreachable as error:
                await self._wait_after("the gateway cannot be reached", error)
            except Refused as refusal:
                await self._wait_after_refusal(refusal)
            except Exception as error:  # noqa: BLE001 -- logged; the loop goes on
                _log.exception("a turn of the order loop failed")
                await self._wait_after("a turn of the order loop failed", error)

    async def _turn(self) -> bool:
        """Return True if it brought an order, or a reclaim request, to its end."""
        # Before a lease, or a reclaim, that could not be written down and would turn stale.
        self._parts.journal.ensure_alone()
        if (why := await self._parts.journal.why_not_writable()) is not None:
            self._tell_obstacle(why)
            await self._pause(DISK_DELAY)
            return False
        # A report may be on disk though writing it down seemed to fail: whoever wrote it did not send it.
        await self._parts.outbox.start()
        if self._reclaim_in_progress:
            await self._parts.journal.reclaims.interrupt_taken()
            self._reclaim_in_progress = False
        reclaim_request = await self._parts.journal.reclaims.next()
        if reclaim_request is not None and await self._try_reclaim(reclaim_request):
            return True
        if not self._names:
            await self._parts.gateway.probe()
            self._backoff.reset()
            await self._rest(PROBE_DELAY, reclaim_request)
            return False
        if (shortage := self._parts.disk.shortage()) is not None:
            self._tell_obstacle(shortage)
            await self._rest(DISK_DELAY, reclaim_request)
            return False
        if self._obstacle_told:
            _log.info("orders are taken again")
        self._obstacle_told = False
        wait = min(SHORT_WAIT, self._lease_wait) if reclaim_request is not None else self._lease_wait
        waiting = self._parts.gateway.lease(self._names, wait)
        lease = await self._until_reclaim_request_or_stop(waiting, watch_reclaim_requests=reclaim_request is None)
        self._backoff.reset()
        return lease is not None and await self._intake.execute(lease, from_queue=True) is not None

    # Waiting

    async def _until_reclaim_request_or_stop(
        self, waiting: Coroutine[Any, Any, T], *, watch_reclaim_requests: bool = True
    ) -> T | None:
        """Return what `waiting` brings; None if a reclaim request, or the stop, came first.

        A lease that was on its way then is not lost: the same session gets it again.
        """
        others: list[Coroutine[Any, Any, object]] = [self._stopping.wait()]
        if watch_reclaim_requests:
            others.append(self._reclaim_request_comes())
        done = await race(waiting, *others)
        return None if done is None else done.result()

    async def _reclaim_request_comes(self) -> bool:
        while await self._parts.journal.reclaims.next() is None:
            await self._parts.clock.sleep(RECLAIM_POLL)
        return True

    async def _rest(self, seconds: float, reclaim_request: ReclaimRequest | None) -> None:
        """Until the next turn; a request that has to wait is tried again sooner."""
        rest = self._parts.clock.sleep(seconds if reclaim_request is None else SHORT_WAIT)
        await self._until_reclaim_request_or_stop(rest, watch_reclaim_requests=reclaim_request is None)

    async def _pause(self, seconds: float) -> None:
        await self._until_reclaim_request_or_stop(self._parts.clock.sleep(seconds), watch_reclaim_requests=False)

    async def _wait_after(self, words: str, error: Exception) -> None:
        delay = self._backoff.delay()
        _log.warning("%s, trying again in %.1f s: %s", words, delay, error)
        await self._pause(delay)

    async def _wait_after_refusal(self, refusal: Refused) -> None:
        words = BAD_CREDENTIALS if refusal.is_credentials else "the gateway refused"
        _log.error("%s; trying again in %.0f s (%s): %s", words, CREDENTIALS_DELAY, refusal.reason_name, refusal)
        await self._pause(CREDENTIALS_DELAY)

    def _tell_obstacle(self, why: str) -> None:
        if not self._obstacle_told:
            _log.error("no new order is taken: %s", why)
        self._obstacle_told = True

    # Reclaiming

    async def _try_reclaim(self, reclaim_request: ReclaimRequest) -> bool:
        """Return True if the request came to an end, or must be tried again at once; False if it has to wait."""
        journal = self._parts.journal
        try:
            lease = await self._parts.gateway.reclaim(
                reclaim_request.task_id,
                self._names,
                requested_by=reclaim_request.requested_by,
                reason=reclaim_request.reason,
            )
        except Refused as refusal:
            if refusal.reason == errors_pb2.ERROR_REASON_ANOTHER_TASK_ACTIVE:
                await journal.reclaims.move(
                    reclaim_request.id, ReclaimStatus.WAITING, "another task is in execution; waiting for its end"
                )
                return False
            await journal.reclaims.move(reclaim_request.id, ReclaimStatus.REFUSED, f"{refusal.reason_name}: {refusal}")
            return True
        except Unreachable as error:
            await journal.reclaims.move(
                reclaim_request.id, ReclaimStatus.WAITING, f"the gateway cannot be reached: {error}"
            )
            raise
        self._reclaim_in_progress = True
        await journal.reclaims.move(reclaim_request.id, ReclaimStatus.TAKEN, "in execution")
        status = await self._intake.execute(lease)
        order = await journal.orders.find(reclaim_request.task_id)
        if status is None:
            await journal.reclaims.move(
                reclaim_request.id, ReclaimStatus.INTERRUPTED, "the lease was lost before the task had ended"
            )
        else:
            words = f"{status}, {order.state}: {order.detail}" if order else status.value
            await journal.reclaims.move(reclaim_request.id, ReclaimStatus.DONE, words)
        self._reclaim_in_progress = False
        return True
