"""The query loop: leases queries beside the order loop, several in hand at once, one report for each.

A lease that runs out is handed out again by the gateway, so nothing here is kept on disk: what is in hand at the end is
reported, or left to run out.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from ordergateway.v1 import errors_pb2
from ordergateway.v1 import query_leases_pb2 as pb

from worker.account_queries.execution import MAX_MESSAGE, TOO_LARGE, Reader
from worker.account_queries.port import Outcome, QueryLeases
from worker.clock import Clock, Entropy
from worker.gateway.backoff import Backoff
from worker.gateway.bounds import LEASE_TTL, TURN
from worker.gateway.port import BAD_CREDENTIALS, InvalidAnswer, Refused, Unreachable
from worker.gateway.wire import to_seconds
from worker.racing import race

_log = logging.getLogger(__name__)
T = TypeVar("T")

FIRST_DELAY = 0.5
MOST_DELAY = 30.0
REFUSED_DELAY = 30.0
# Of a lease's life this much is for reading; the rest is for the report.
SHARE_FOR_READING = 0.9
_DROP = (errors_pb2.ERROR_REASON_QUERY_LEASE_INVALID, errors_pb2.ERROR_REASON_QUERY_NOT_FOUND)
_RESULT_NOT_TAKEN = (errors_pb2.ERROR_REASON_INVALID_FIELD, errors_pb2.ERROR_REASON_TOO_LARGE)


class QueryLoop:
    """Takes queries of `sites` and executes them, at most `at_once` at a time."""

    def __init__(
        self,
        gateway: QueryLeases,
        reader: Reader,
        sites: Sequence[str],
        clock: Clock,
        entropy: Entropy,
        *,
        at_once: int,
        lease_wait: float,
        stopping: asyncio.Event,
    ) -> None:
        self._gateway = gateway
        self._reader = reader
        self._sites = sites
        self._clock = clock
        self._entropy = entropy
        self._at_once = at_once
        self._lease_wait = lease_wait
        self._stopping = stopping
        self._backoff = Backoff(entropy, first=FIRST_DELAY, most=MOST_DELAY)
        self._leased: dict[str, tuple[int, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Run until the worker is stopped and what is in hand is reported. Cancelled, it leaves that to run out."""
        try:
            while not self._stopping.is_set():
                begun = self._clock.elapsed()
                try:
                    if not await self._turn():
                        await self._unless_stopped(self._clock.sleep(TURN.least - (self._clock.elapsed() - begun)))
                except InvalidAnswer as error:
                    await self._wait_after("nothing is taken", error, self._backoff.delay())
                except Unreachable as error:
                    await self._wait_after("the gateway cannot be reached", error, self._backoff.delay())
                except Refused as refusal:
                    words = f"the gateway refused ({refusal.reason_name})"
                    if refusal.is_credentials:
                        words = BAD_CREDENTIALS
                    await self._wait_after(words, refusal, REFUSED_DELAY)
                except Exception as error:  # noqa: BLE001 -- logged; the loop goes on
                    _log.exception("a turn of the query loop failed")
                    await self._wait_after("a turn of the query loop failed", error, self._backoff.delay())
            await asyncio.gather(*self._tasks(), return_exceptions=True)
        finally:
            left = self._tasks()
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    def _tasks(self) -> list[asyncio.Task[None]]:
        return [task for _, task in self._leased.values()]

    async def _turn(self) -> bool:
        """Return True if it brought something."""
        if not self._sites:
            await self._stopping.wait()
            return False
        if len(self._leased) >= self._at_once:
            await self._unless_stopped(asyncio.wait(self._tasks(), return_when=asyncio.FIRST_COMPLETED))
            return True
        lease = await self._unless_stopped(
            self._gateway.lease(self._sites, self._lease_wait, held=sorted(self._leased))
        )
        self._backoff.reset()
        return lease is not None and self._take(lease)

    def _take(self, lease: pb.QueryLease) -> bool:
        """Return True unless it is in hand already."""
        attempt, running = self._leased.get(lease.query_id, (0, None))
        if running is not None:
            if attempt >= lease.attempt:
                return False
            # The earlier attempt has run out: its result would be refused.
            running.cancel()
        task = asyncio.create_task(self._work(lease, self._clock.elapsed()))
        self._leased[lease.query_id] = (lease.attempt, task)
        task.add_done_callback(self._putting_down(lease.query_id))
        return True

    def _putting_down(self, query_id: str) -> Callable[[asyncio.Task[None]], None]:
        def put_down(task: asyncio.Task[None]) -> None:
            if self._leased.get(query_id, (0, None))[1] is task:
                del self._leased[query_id]

        return put_down

    async def _work(self, lease: pb.QueryLease, received_at: float) -> None:
        fields = {"query_id": lease.query_id, "site": lease.site, "attempt": lease.attempt}
        lives_for = to_seconds(lease.lease_ttl, LEASE_TTL)
        outcome = await self._reader.execute(lease, seconds=lives_for * SHARE_FOR_READING)
        words = "succeeded" if outcome.succeeded else f"failed ({outcome.code}): {outcome.message}"
        _log.info("query %s", words, extra=fields)
        try:
            await self._report(lease, outcome, until=received_at + lives_for)
        except Exception:  # noqa: BLE001 -- logged; the lease runs out
            _log.exception("a query's outcome could not be reported; its lease runs out", extra=fields)

    async def _report(self, lease: pb.QueryLease, outcome: Outcome, *, until: float) -> None:
        """Report once; repeats only what brought no answer, and only while the lease lives."""
        fields = {"query_id": lease.query_id, "attempt": lease.attempt}
        backoff = Backoff(self._entropy, first=FIRST_DELAY, most=MOST_DELAY)
        while True:
            try:
                await self._gateway.report(lease.query_id, lease.attempt, outcome)
            except Unreachable as error:
                delay = backoff.delay()
                if self._clock.elapsed() + delay >= until:
                    _log.warning("a query's outcome is dropped, its lease has run out: %s", error, extra=fields)
                    return
                await self._clock.sleep(delay)
            except Refused as refusal:
                if refusal.reason in _RESULT_NOT_TAKEN and outcome.succeeded:
                    outcome = Outcome(code=TOO_LARGE, message=f"the gateway does not take it: {refusal}"[:MAX_MESSAGE])
                    continue
                level = logging.INFO if refusal.reason in _DROP else logging.ERROR
                _log.log(level, "a query's outcome is dropped (%s)", refusal.reason_name, extra=fields)
                return
            else:
                return

    async def _unless_stopped(self, waiting: Coroutine[Any, Any, T]) -> T | None:
        """Return what `waiting` brings; None if the stop came first. A lease on its way then runs out."""
        done = await race(waiting, self._stopping.wait())
        return None if done is None else done.result()

    async def _wait_after(self, words: str, error: Exception, delay: float) -> None:
        _log.warning("queries: %s, trying again in %.1f s: %s", words, delay, error)
        await self._unless_stopped(self._clock.sleep(delay))
