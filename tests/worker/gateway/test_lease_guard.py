"""The guard says exactly until when a lease may be used, by a clock that the test moves."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from ordergateway.v1 import errors_pb2
from ordergateway.v1 import order_leases_pb2 as pb

from tests.worker.virtual import CountedEntropy, ManualClock
from worker.gateway.lease_guard import LeaseGuard, LeaseLostError, StepTimeoutError, WorkerStoppingError, margin_of
from worker.gateway.port import Refused, Unreachable
from worker.gateway.wire import to_duration

TTL = 300.0
ACK = 30.0
TICK = 1e-6


class Renewals:
    """The gateway's renewals, answered by what the test puts here; counts the calls."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.count = 0
        self.ttl = TTL
        self.failures: list[Exception] = []
        self.during: Callable[[], Awaitable[None]] | None = None

    async def renew(
        self, task_id: str, lease_token: str, *, seconds: float, with_other_orders: bool = False
    ) -> pb.RenewLeaseResponse:
        assert (task_id, lease_token) == ("po-1", "token")
        assert seconds > 0
        self.count += 1
        if self.during is not None:
            await self.during()
        if self.failures:
            raise self.failures.pop(0)
        return pb.RenewLeaseResponse(lease_ttl=to_duration(self.ttl), lease_age=to_duration(self.count))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def renewals(clock: ManualClock) -> Renewals:
    return Renewals(clock)


@pytest.fixture
def stopping() -> asyncio.Event:
    return asyncio.Event()


@pytest.fixture
def guard(clock: ManualClock, renewals: Renewals, stopping: asyncio.Event) -> LeaseGuard:
    lease = pb.Lease(
        task_id="po-1", lease_token="token", lease_ttl=to_duration(TTL), acknowledge_within=to_duration(ACK)
    )
    return LeaseGuard(
        lease,
        renewals,  # type: ignore[arg-type]
        clock,
        CountedEntropy(),
        received_at=clock.elapsed(),
        stopping=stopping,
    )


async def test_an_unacknowledged_lease_ends_with_the_time_to_acknowledge(clock: ManualClock, guard: LeaseGuard) -> None:
    await clock.advance(ACK - TICK)
    guard.ensure()
    await clock.advance(TICK)
    with pytest.raises(LeaseLostError):
        guard.ensure()


async def test_the_deadline_counts_from_when_the_renewal_was_sent(
    clock: ManualClock, renewals: Renewals, guard: LeaseGuard
) -> None:
    sent_at = clock.elapsed()
    renewals.during = lambda: clock.advance(7)
    await guard.renew()

    assert guard.deadline == sent_at + TTL - margin_of(TTL)
    await clock.advance(guard.deadline - clock.elapsed() - TICK)
    guard.ensure()
    await clock.advance(2 * TICK)
    with pytest.raises(LeaseLostError):
        guard.ensure()


async def test_a_step_of_the_wall_clock_moves_nothing(clock: ManualClock, guard: LeaseGuard) -> None:
    await guard.renew()
    clock.wall = clock.wall.replace(year=2036)
    guard.ensure()


async def test_it_renews_every_third_of_the_ttl_and_at_least_every_minute(
    clock: ManualClock, renewals: Renewals, guard: LeaseGuard
) -> None:
    await guard.renew()
    async with guard:
        await asyncio.sleep(0)
        for count in range(2, 5):
            await clock.advance(59)
            assert renewals.count == count - 1
            await clock.advance(1)
            assert renewals.count == count


async def test_a_failed_renewal_is_repeated_until_the_deadline_and_then_the_lease_is_lost(
    clock: ManualClock, renewals: Renewals, guard: LeaseGuard
) -> None:
    await guard.renew()
    renewals.failures = [Unreachable("away")] * 10_000
    async with guard:
        await asyncio.sleep(0)
        while not guard.is_lost:
            guard.ensure()
            await clock.advance(1)
        assert clock.elapsed() == pytest.approx(guard.deadline, abs=1)
        assert renewals.count > 20


async def test_one_failed_renewal_does_no_harm(clock: ManualClock, renewals: Renewals, guard: LeaseGuard) -> None:
    await guard.renew()
    async with guard:
        await asyncio.sleep(0)
        renewals.failures = [Unreachable("away")]
        await clock.advance(60)
        await clock.advance(5)
        assert renewals.count == 3
        assert guard.deadline == clock.elapsed() + TTL - margin_of(TTL)


async def test_a_refused_renewal_loses_the_lease_at_once(renewals: Renewals, guard: LeaseGuard) -> None:
    await guard.renew()
    renewals.failures = [Refused("no", reason=errors_pb2.ERROR_REASON_LEASE_INVALID)]
    with pytest.raises(LeaseLostError, match="LEASE_INVALID"):
        await guard.renew()
    with pytest.raises(LeaseLostError):
        guard.ensure()
    with pytest.raises(LeaseLostError):
        await guard.renew()


async def test_a_step_is_cancelled_when_the_lease_is_lost(
    clock: ManualClock, renewals: Renewals, guard: LeaseGuard
) -> None:
    await guard.renew()
    cancelled = asyncio.Event()

    async def step() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async with guard:
        holding = asyncio.ensure_future(guard.hold(step(), seconds=None))
        await asyncio.sleep(0)
        renewals.failures = [Refused("no", reason=errors_pb2.ERROR_REASON_LEASE_INVALID)]
        await clock.advance(60)
        with pytest.raises(LeaseLostError):
            await holding
    assert cancelled.is_set()


async def test_nothing_begins_after_the_deadline(clock: ManualClock, guard: LeaseGuard) -> None:
    begun = False

    async def step() -> None:
        nonlocal begun
        begun = True

    await guard.renew()
    await clock.advance(guard.deadline - clock.elapsed())
    with pytest.raises(LeaseLostError):
        await guard.hold(step(), seconds=1)
    assert not begun


async def test_a_step_is_cancelled_when_the_worker_is_stopped(guard: LeaseGuard, stopping: asyncio.Event) -> None:
    await guard.renew()
    holding = asyncio.ensure_future(guard.hold(asyncio.Event().wait(), seconds=None))
    await asyncio.sleep(0)
    stopping.set()
    with pytest.raises(WorkerStoppingError):
        await holding
    with pytest.raises(WorkerStoppingError):
        await guard.hold(asyncio.sleep(0), seconds=1)


async def test_a_step_that_hangs_times_out(guard: LeaseGuard) -> None:
    await guard.renew()
    with pytest.raises(StepTimeoutError):
        await guard.hold(asyncio.Event().wait(), seconds=0.01)


async def test_what_a_step_raises_comes_through(guard: LeaseGuard) -> None:
    async def step() -> None:
        raise KeyError("x")

    await guard.renew()
    with pytest.raises(KeyError):
        await guard.hold(step(), seconds=1)


async def test_the_life_that_a_renewal_tells_is_the_one_that_counts(
    clock: ManualClock, guard: LeaseGuard, renewals: Renewals
) -> None:
    """The gateway may have been started again with other settings: a shorter life is kept to at once, a longer used."""
    for ttl in (30.0, 900.0):
        renewals.ttl = ttl
        sent = clock.elapsed()
        await guard.renew()
        assert guard.deadline == sent + ttl - margin_of(ttl)


async def test_a_shorter_life_is_renewed_sooner(clock: ManualClock, guard: LeaseGuard, renewals: Renewals) -> None:
    renewals.ttl = 9.0
    await guard.renew()
    async with guard:
        await clock.advance(0)  # the guard begins to wait
        await clock.advance(3.0 - TICK)
        assert renewals.count == 1
        await clock.advance(TICK)
        assert renewals.count == 2


async def test_a_life_of_next_to_nothing_is_not_renewed_without_rest(
    clock: ManualClock, guard: LeaseGuard, renewals: Renewals
) -> None:
    renewals.ttl = 0.3
    await guard.renew()
    async with guard:
        await clock.advance(0)
        await clock.advance(0.25 - TICK)
        assert renewals.count == 1
