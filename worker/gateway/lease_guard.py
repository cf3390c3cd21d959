"""Holds a lease and says, at every moment, whether the worker may still write to the site.

The worker trusts its lease only until (the moment the renewal was *sent* + the TTL - a margin), by a clock that no
wall-clock step moves and that goes on in suspend. A failed renewal is repeated with backoff until then.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar

from ordergateway.v1 import order_leases_pb2 as pb

from worker.clock import Clock, Entropy
from worker.gateway.backoff import Backoff
from worker.gateway.bounds import ACKNOWLEDGE_WITHIN, BETWEEN_RENEWALS, LEASE_AGE, LEASE_TTL, Bounds
from worker.gateway.port import OrderLeases, Refused, Unreachable
from worker.gateway.wire import to_seconds
from worker.racing import race

_log = logging.getLogger(__name__)
T = TypeVar("T")

MOST_MARGIN = 10.0
MOST_RENEWAL_CALL = 10.0
RENEWAL_DELAY = Bounds(0.05, 0.5)
"""The first delay between two attempts at one renewal."""


class LeaseLostError(Exception):
    """The lease is gone or nearly over: nothing may be written to the site any more."""


class StepTimeoutError(Exception):
    """A step on the site took longer than it may."""


class WorkerStoppingError(Exception):
    """The worker is being stopped: nothing new is begun."""


def margin_of(ttl: float) -> float:
    """Seconds of the lease that are not used: they cover what a write begun at the last moment may take to arrive."""
    return min(MOST_MARGIN, ttl / 10)


class LeaseGuard:
    """Guards one lease. `async with` keeps it renewed; `ensure` and `hold` stand before every write to the site."""

    def __init__(
        self,
        lease: pb.Lease,
        gateway: OrderLeases,
        clock: Clock,
        entropy: Entropy,
        *,
        received_at: float,
        stopping: asyncio.Event,
    ) -> None:
        """`received_at`: reading of the elapsed clock when the lease came; the gateway judges its acknowledgement."""
        self._task_id = lease.task_id
        self._token = lease.lease_token
        self._gateway = gateway
        self._clock = clock
        self._stopping = stopping
        self._ttl = to_seconds(lease.lease_ttl, LEASE_TTL)
        self._deadline = received_at + to_seconds(lease.acknowledge_within, ACKNOWLEDGE_WITHIN)
        self._backoff = Backoff(
            entropy, first=RENEWAL_DELAY.clamp(self._ttl / 20), most=max(RENEWAL_DELAY.least, min(5.0, self._ttl / 6))
        )
        self._lost = asyncio.Event()
        self._why_lost = ""
        self._turn = asyncio.Lock()
        self._renewing: asyncio.Task[None] | None = None
        self.lease_age: float | None = None

    @property
    def deadline(self) -> float:
        """Reading of the elapsed clock from which on the lease is not trusted."""
        return self._deadline

    @property
    def is_lost(self) -> bool:
        """True if the worker may not write to the site any more."""
        if not self._lost.is_set() and self._clock.elapsed() >= self._deadline:
            self._lose("its time is over")
        return self._lost.is_set()

    @property
    def is_stopping(self) -> bool:
        """True once the worker is being stopped."""
        return self._stopping.is_set()

    def ensure(self) -> None:
        """Raise LeaseLostError if the lease is not to be trusted now."""
        if self.is_lost:
            raise LeaseLostError(f"the lease is lost: {self._why_lost}")

    def ensure_may_begin(self) -> None:
        """As `ensure`, and raises WorkerStoppingError if the worker is being stopped."""
        self.ensure()
        if self._stopping.is_set():
            raise WorkerStoppingError

    async def renew(self) -> None:
        """Renew now (the first time: acknowledge), repeating until it succeeds. Raises LeaseLostError."""
        await self._renew(with_other_orders=False)

    async def other_orders(self, *, seconds: float) -> pb.OtherOrders | None:
        """Return what the gateway knows now of other tasks' orders; None if it does not say within `seconds`.

        Renews the lease, too.

        Raises LeaseLostError or WorkerStoppingError.
        """
        try:
            answer = await self.hold(self._renew(with_other_orders=True), seconds=seconds)
        except StepTimeoutError:
            return None
        return answer.other_orders if answer.HasField("other_orders") else None

    async def _renew(self, *, with_other_orders: bool) -> pb.RenewLeaseResponse:
        async with self._turn:
            while True:
                self.ensure()
                sent = self._clock.elapsed()
                try:
                    answer = await self._gateway.renew(
                        self._task_id,
                        self._token,
                        seconds=min(MOST_RENEWAL_CALL, self._deadline - sent),
                        with_other_orders=with_other_orders,
                    )
                except Refused as refusal:
                    if not refusal.is_credentials:
                        self._lose(f"the gateway refused to renew it ({refusal.reason_name}): {refusal}")
                        self.ensure()
                    _log.warning("the gateway does not accept the token: %s", refusal, extra={"task_id": self._task_id})
                except Unreachable as error:
                    _log.warning("renewal failed: %s", error, extra={"task_id": self._task_id})
                else:
                    self._ttl = to_seconds(answer.lease_ttl, LEASE_TTL)
                    self._deadline = sent + self._ttl - margin_of(self._ttl)
                    self.lease_age = to_seconds(answer.lease_age, LEASE_AGE)
                    self._backoff.reset()
                    return answer
                await self._clock.sleep(min(self._backoff.delay(), max(0.0, self._deadline - self._clock.elapsed())))

    async def __aenter__(self) -> Self:
        self._renewing = asyncio.ensure_future(self._keep_renewed())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._renewing is not None:
            self._renewing.cancel()
            with suppress(asyncio.CancelledError):
                await self._renewing

    async def _keep_renewed(self) -> None:
        try:
            while True:
                await self._clock.sleep(BETWEEN_RENEWALS.clamp(self._ttl / 3))
                await self.renew()
        except LeaseLostError as error:
            _log.warning("%s", error, extra={"task_id": self._task_id})
        except Exception as error:  # noqa: BLE001 -- logged; the lease is given up
            self._lose(f"it could not be renewed: {error!r}")
            _log.exception("the renewal ended", extra={"task_id": self._task_id})

    def _lose(self, why: str) -> None:
        self._why_lost = self._why_lost or why
        self._lost.set()

    async def hold(self, step: Coroutine[Any, Any, T], *, seconds: float | None, despite_stop: bool = False) -> T:
        """Run one step that may still be broken off.

        The step is cancelled, and LeaseLostError, WorkerStoppingError or StepTimeoutError raised, when the lease is
        lost or nearly over, when the worker is being stopped, or after `seconds` (None: never). `despite_stop`: a stop
        is no reason.
        """
        try:
            if despite_stop:
                self.ensure()
            else:
                self.ensure_may_begin()
        except (LeaseLostError, WorkerStoppingError):
            step.close()
            raise
        reasons = (self._lost.wait(),) if despite_stop else (self._lost.wait(), self._stopping.wait())
        done = await race(step, *reasons, seconds=seconds)
        if done is not None:
            return done.result()
        if self._lost.is_set():
            self.ensure()
        if self._stopping.is_set() and not despite_stop:
            raise WorkerStoppingError
        raise StepTimeoutError(f"the step took longer than {seconds} s")

    async def wait(self, seconds: float) -> None:
        """Sleep while the lease lives. Raises LeaseLostError or WorkerStoppingError."""
        await self.hold(self._clock.sleep(seconds), seconds=seconds + 60)
