"""The dispatcher without a transport: who gets what, who has gone, what the end of the gateway does."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from common.target import Target
from gateway.dispatch.stream import HEARTBEAT_SECONDS, Heartbeat
from gateway.domain.leases import Lease, LeaseRequest
from gateway.domain.refusals import Reason, RefusedError
from gateway.domain.states import TaskStatus
from tests.gateway.support.core import Core, running_core, task_count
from tests.gateway.support.store_threads import run_in_a_thread, run_on_the_loop


# An engine over the network runs everything in a thread of its own anyway.
@pytest.fixture(params=[run_on_the_loop, pytest.param(run_in_a_thread, marks=pytest.mark.sqlite)])
async def core(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Core]:
    """The dispatcher on a store that runs operations in the loop's thread, as ours, and on one that does not."""
    with request.param():
        async with running_core(tmp_path / "gateway.db") as running:
            yield running


class Waiting:
    """A consumer of a stream, in a task of its own."""

    def __init__(self, core: Core, request: LeaseRequest, wait: float = 30) -> None:
        self.beats = asyncio.Event()
        self.events: list[Heartbeat | Lease] = []
        self._stream = core.dispatcher.stream(request, wait)
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> Lease | None:
        async with aclosing(self._stream) as events:
            async for event in events:
                self.events.append(event)
                self.beats.set()
                if isinstance(event, Lease):
                    return event
        return None

    async def lease(self) -> Lease | None:
        return await asyncio.wait_for(self.task, 60)

    async def cancel(self) -> None:
        self.task.cancel()
        await asyncio.wait({self.task})


async def writing(core: Core) -> None:
    """Wait until the writer has a group in hand."""
    while not core.store._writer._busy:  # noqa: ASYNC110 - it gives no signal
        await asyncio.sleep(0)


async def in_line(core: Core, request: LeaseRequest | None = None, wait: float = 30) -> Waiting:
    """Somebody who is known to stand in line."""
    waiting = Waiting(core, request or core.request(), wait)
    while not any(waiter.request is request for waiter in core.dispatcher._waiters):
        if request is None and core.dispatcher._waiters:
            break
        await asyncio.sleep(0)
        assert not waiting.task.done()
    return waiting


@pytest.mark.sqlite
async def test_operations_run_in_the_thread_that_the_store_chooses(core: Core, request: pytest.FixtureRequest) -> None:
    thread = await core.store.write(lambda _tx, _now: threading.current_thread())
    in_the_loops = request.node.callspec.params["core"] is run_on_the_loop
    assert (thread is threading.current_thread()) == in_the_loops


async def test_first_come_first_served(core: Core) -> None:
    waiting = [await in_line(core, core.request(f"w{number}")) for number in range(3)]
    await core.submit()
    assert await waiting[0].lease() is not None
    assert not waiting[1].task.done()
    for other in waiting[1:]:
        await other.cancel()


async def test_who_has_gone_gets_nothing_and_the_next_one_does(core: Core) -> None:
    gone = await in_line(core, core.request("w1"))
    stays = await in_line(core, core.request("w2"))
    await gone.cancel()
    await core.submit()
    lease = await stays.lease()
    assert lease is not None
    assert (await core.task()).lease_owner == "w2"
    assert lease.lease_count == 1


async def test_who_goes_while_the_lease_is_being_committed_gives_it_back(core: Core) -> None:
    waiting = await in_line(core, core.request("w1"))
    submitting = asyncio.create_task(core.submit())
    await writing(core)
    await waiting.cancel()
    await submitting
    await core.quiet()
    task = await core.task()
    assert (task.status, task.lease_count) == (TaskStatus.QUEUED, 0)


async def test_who_goes_while_opening_gives_back_what_the_opening_brought(core: Core) -> None:
    await core.submit()
    waiting = Waiting(core, core.request())
    await writing(core)
    await waiting.cancel()
    await core.quiet()
    task = await core.task()
    assert (task.status, task.lease_count) == (TaskStatus.QUEUED, 0)
    assert await core.lease(core.request("w2")) is not None


async def test_a_lease_that_was_handed_over_is_not_given_back(core: Core) -> None:
    await core.submit()
    async with aclosing(core.dispatcher.stream(core.request(), 30)) as events:
        async for event in events:
            if isinstance(event, Lease):
                break
    await core.quiet()
    assert (await core.task()).status is TaskStatus.LEASED


async def test_a_repeat_that_nobody_took_does_not_undo_what_was_given_before(core: Core) -> None:
    await core.submit()
    first = await core.lease()
    assert first is not None
    again = Waiting(core, core.request())
    await writing(core)
    await again.cancel()
    await core.quiet()
    task = await core.task()
    assert (task.status, task.lease_count) == (TaskStatus.LEASED, 1)
    repeated = await core.lease()
    assert repeated is not None
    assert repeated.token == first.token


async def test_a_process_that_waits_anew_gets_its_lease_there(core: Core) -> None:
    dead = await in_line(core, core.request())
    alive = await in_line(core, core.request())
    await core.submit()
    assert await alive.lease() is not None
    assert not dead.task.done()
    await dead.cancel()
    await core.quiet()
    assert (await core.task()).status is TaskStatus.LEASED


async def test_a_superseded_stream_goes_on_to_its_end_without_a_lease(core: Core) -> None:
    clock = asyncio.get_running_loop().time
    begun = clock()
    former = await in_line(core, core.request(), wait=1)
    latter = await in_line(core, core.request())
    assert await former.lease() is None
    assert clock() - begun >= 1
    await latter.cancel()
    assert not core.dispatcher._waiters
    assert not core.dispatcher._latest
    assert not core.dispatcher._superseded


async def test_a_request_that_is_read_after_a_later_one_of_its_process_gets_nothing(core: Core) -> None:
    alive = await in_line(core, core.request(stream_number=2))
    late = Waiting(core, core.request(stream_number=1), wait=1)
    await late.beats.wait()
    await core.submit()
    assert await alive.lease() is not None
    assert await late.lease() is None
    assert not core.dispatcher._latest
    assert not core.dispatcher._superseded


async def test_a_process_with_the_journal_of_a_dead_one_takes_its_place(core: Core) -> None:
    dead = await in_line(core, core.request(stream_number=7))
    alive = await in_line(core, core.request(session="another-session-1", stream_number=1))
    await core.submit()
    assert await alive.lease() is not None
    assert not dead.task.done()
    await dead.cancel()


async def test_two_journals_or_two_sites_do_not_supersede_each_other(core: Core) -> None:
    waiting = [
        await in_line(core, core.request("w1")),
        await in_line(core, core.request("w1", session="another-session-1", journal_id="another-journal-1")),
        await in_line(core, core.request("w1", sites=("rakuten",))),
    ]
    assert len([*core.dispatcher._waiters]) == 3
    for one in waiting:
        await one.cancel()


async def test_the_end_of_the_gateway_ends_all_waits_and_leases_nothing(core: Core) -> None:
    waiting = [await in_line(core, core.request(f"w{number}")) for number in range(5)]
    superseded, waiting[0] = waiting[0], await in_line(core, core.request("w0"))
    core.notifier.close()
    await core.submit()
    for one in (superseded, *waiting):
        with pytest.raises(RefusedError) as refused:
            await one.lease()
        assert refused.value.refusal.reason is Reason.SHUTTING_DOWN
    with pytest.raises(RefusedError):
        await core.lease()
    await core.quiet()
    assert (await core.task()).lease_count == 0


async def test_what_was_leased_as_the_gateway_began_to_stop_is_given_back(core: Core) -> None:
    waiting = await in_line(core, core.request())
    submitting = asyncio.create_task(core.submit())
    await writing(core)
    core.notifier.close()
    await submitting
    with pytest.raises(RefusedError):
        await waiting.lease()
    await core.quiet()
    task = await core.task()
    assert (task.status, task.lease_count) == (TaskStatus.QUEUED, 0)


async def test_who_was_opening_as_the_gateway_began_to_stop_is_told_at_once(core: Core) -> None:
    waiting = Waiting(core, core.request())
    await writing(core)
    core.notifier.close()
    with pytest.raises(RefusedError) as refused:
        await waiting.lease()
    assert refused.value.refusal.reason is Reason.SHUTTING_DOWN


async def test_heartbeats_come_at_once_and_in_between(tmp_path: Path) -> None:
    assert HEARTBEAT_SECONDS == 10
    async with running_core(tmp_path / "gateway.db", heartbeat_seconds=0.05) as core:
        clock = asyncio.get_running_loop().time
        begun = clock()
        waiting = Waiting(core, core.request())
        async with asyncio.timeout(60):
            while len(waiting.events) < 5:
                await waiting.beats.wait()
                waiting.beats.clear()
        assert clock() - begun >= 4 * 0.05, "one at once, and each further one after a pause"
        await waiting.cancel()
    assert all(isinstance(event, Heartbeat) for event in waiting.events)


async def test_a_lost_hint_costs_no_more_than_the_poll(core: Core) -> None:
    waiting = await in_line(core, core.request())
    core.store._writer._pre_commit_hooks.pop("queue")
    core.store._writer._publish = lambda _notifications: None
    await core.submit()
    lease = await asyncio.wait_for(waiting.lease(), 60)
    assert lease is not None


async def test_two_thousand_waits_that_are_broken_off_leave_nothing(core: Core) -> None:
    await core.lease()
    topics = core.notifier.topics()
    with task_count() as more:
        for _ in range(10):
            waiting = [Waiting(core, core.request(f"w{number}")) for number in range(200)]
            await asyncio.gather(*(one.beats.wait() for one in waiting))
            for one in waiting:
                one.task.cancel()
            await asyncio.wait({one.task for one in waiting})
            await core.quiet()
        assert more() == 0
    assert not core.dispatcher._waiters
    assert not core.dispatcher._latest
    assert not core.dispatcher._background_tasks
    assert core.notifier.topics() == topics
    assert core.rows("SELECT * FROM leases") == []


async def test_an_order_filed_while_a_wait_is_being_opened_is_not_overlooked(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.dispatch.dispatcher.POLL_SECONDS", 60)
    looked = asyncio.Event()
    look = core.dispatcher._look

    async def look_and_tell(targets: Any) -> None:
        await look(targets)
        looked.set()

    core.dispatcher._look = look_and_tell  # type: ignore[method-assign]
    other = await in_line(core, core.request("w1", sites=("sandbox",)))
    await asyncio.wait_for(looked.wait(), 60)
    waiting = Waiting(core, core.request("w2"))
    while not core.store._writer._pending:  # noqa: ASYNC110 - it gives no signal
        await asyncio.sleep(0)
    await core.submit()  # in one group with the opening, and after it
    assert await asyncio.wait_for(waiting.lease(), 60) is not None
    await other.cancel()


async def test_a_lease_that_was_delivered_as_the_gateway_began_to_stop_is_given_back(core: Core) -> None:
    deliver = core.dispatcher._deliver

    def deliver_and_stop(taken: Any) -> None:
        deliver(taken)
        core.notifier.close()

    core.dispatcher._deliver = deliver_and_stop  # type: ignore[method-assign]
    waiting = await in_line(core, core.request())
    await core.submit()
    with pytest.raises(RefusedError) as refused:
        await waiting.lease()
    assert refused.value.refusal.reason is Reason.SHUTTING_DOWN
    await core.quiet()
    task = await core.task()
    assert (task.status, task.lease_count) == (TaskStatus.QUEUED, 0)


async def test_a_process_that_waits_anew_while_its_former_wait_is_being_opened_gets_its_lease_there(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.dispatch.dispatcher.POLL_SECONDS", 60)
    dead = Waiting(core, core.request())
    await writing(core)
    alive = Waiting(core, core.request())
    await asyncio.wait_for(alive.beats.wait(), 60)
    await core.submit()
    assert await asyncio.wait_for(alive.lease(), 60) is not None
    await dead.cancel()


async def test_settling_ends_though_what_was_given_back_has_only_just_been(core: Core) -> None:
    async def work() -> None:
        await asyncio.sleep(0)

    core.dispatcher._send(work())
    (task,) = core.dispatcher._background_tasks
    while not task.done():  # noqa: ASYNC110 - up to the turn in which it ends, before anybody is told
        await asyncio.sleep(0)
    assert core.dispatcher._background_tasks
    await core.dispatcher.drain()
    assert not core.dispatcher._background_tasks


@pytest.mark.sqlite
async def test_who_joins_after_the_snapshot_does_not_wait_for_the_poll(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody joins while the order is on its way to the disk: the snapshot of those who wait does not hold it."""
    monkeypatch.setattr("gateway.dispatch.dispatcher.POLL_SECONDS", 60)
    first = await in_line(core, core.request("w1", sites=("sandbox",)))
    late = Waiting(core, core.request("w2"))
    opened, committing, joined = asyncio.Event(), threading.Event(), threading.Event()
    opening, snapshot, commit = core.dispatcher._open, core.dispatcher._snapshot, core.store._writer._commit

    async def open_then_wait(request: LeaseRequest) -> Lease | None:
        lease = await opening(request)
        opened.set()
        await asyncio.to_thread(committing.wait, 20)
        return lease

    def commit_when_joined() -> Any:
        committing.set()
        joined.wait(20)
        return commit()

    def snapshot_then_hold_the_commit(notified: Any) -> Any:
        core.store._writer._commit = commit_when_joined  # type: ignore[method-assign]
        core.store._writer._pre_commit_hooks["queue"] = snapshot
        return snapshot(notified)

    core.dispatcher._open = open_then_wait  # type: ignore[method-assign]
    await asyncio.wait_for(opened.wait(), 60)
    core.store._writer._pre_commit_hooks["queue"] = snapshot_then_hold_the_commit
    submitting = asyncio.create_task(core.submit())
    while not any(Target("rakuten") in waiter.request.targets for waiter in core.dispatcher._waiters):  # noqa: ASYNC110 - it gives no signal
        await asyncio.sleep(0.001)
    core.store._writer._commit = commit  # type: ignore[method-assign]
    joined.set()
    await submitting
    assert await late.lease() is not None
    await first.cancel()


async def test_a_hook_in_a_thread_takes_for_those_of_its_snapshot_whoever_goes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.dispatch.dispatcher.POLL_SECONDS", 60)
    with run_in_a_thread():
        async with running_core(tmp_path / "gateway.db") as core:
            loop, taking, gone = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
            first, second = [await in_line(core, core.request(worker)) for worker in ("w1", "w2")]
            take = core.dispatcher._source.take

            def take_when_one_has_gone(*args: Any) -> Lease | None:
                loop.call_soon_threadsafe(taking.set)
                gone.wait(20)
                return take(*args)

            monkeypatch.setattr(core.dispatcher._source, "take", take_when_one_has_gone)
            submitting = asyncio.create_task(core.submit())
            await asyncio.wait_for(taking.wait(), 60)
            await first.cancel()
            gone.set()
            await submitting
            assert await second.lease() is not None
            assert (await core.task()).lease_owner == "w2"
