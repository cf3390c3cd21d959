"""Two whole gateways on one database: wake-ups, sessions, leases, sweeps and settings over both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from common.settings import SettingsError
from gateway.domain.states import OrderState, TaskStatus
from gateway.store.postgres import sharing
from tests.gateway.store.postgres.conftest import Gateways, end_sessions
from tests.gateway.support import postgres
from tests.gateway.support.grpc_api import status_of
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime

pytestmark = pytest.mark.needs("postgresql")


@asynccontextmanager
async def gateway_on(url: str, folder: Path, time: ManualTime, **settings: Any) -> AsyncIterator[RunningGateway]:
    async with running_gateway(folder, time, gateway_db_url=url, **settings) as running:
        yield running


@pytest.fixture
async def pair(url: str, tmp_path: Path, time: ManualTime) -> AsyncIterator[tuple[RunningGateway, RunningGateway]]:
    """Two gateways, which run until the test ends."""
    async with gateway_on(url, tmp_path / "a", time) as a, gateway_on(url, tmp_path / "b", time) as b:
        yield a, b


Pair = tuple[RunningGateway, RunningGateway]


async def test_an_order_filed_at_one_gateway_is_leased_to_who_waits_at_the_other(pair: Pair) -> None:
    a, b = pair
    waiting = asyncio.create_task(b.api.lease(wait=30))
    await asyncio.sleep(0)
    await a.api.submit("po-1")
    lease = await asyncio.wait_for(waiting, 30)
    assert lease is not None
    assert lease.task_id == "po-1"


async def test_an_order_is_leased_also_when_nobody_hears_of_it(
    url: str, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.postgres.listener._AGAIN_SECONDS", 600)
    a, b = pair
    ended = 0
    while ended < 2:  # a gateway that has just started may not listen yet
        ended += end_sessions(url, "listener")
        await asyncio.sleep(0.02)
    waiting = asyncio.create_task(b.api.lease(wait=30))
    await a.api.submit("po-1")
    assert await asyncio.wait_for(waiting, 30) is not None


async def test_a_watch_at_one_gateway_shows_what_is_reported_at_the_other(pair: Pair) -> None:
    a, b = pair
    await a.api.submit("po-1")
    watch = b.api.watch()
    first: Any = await asyncio.wait_for(watch.read(), 30)
    assert first.task.task_id == "po-1"
    await a.api.cancel("po-1")
    last: Any = await asyncio.wait_for(watch.read(), 30)
    assert (status_of(first.task), status_of(last.task)) == (TaskStatus.QUEUED, TaskStatus.FAILED)


async def test_a_lease_of_one_gateway_is_held_at_any_other(pair: Pair) -> None:
    a, b = pair
    await a.api.submit("po-1")
    lease = await a.api.lease()
    assert lease is not None
    await b.api.renew(lease)
    await a.api.report(lease, OrderState.IN_CART, 1)
    permit = await b.api.permit(lease)
    assert permit is not None
    await b.api.report(lease, OrderState.PAID, 2, terminal=True)
    assert await a.api.status("po-1") is TaskStatus.SUCCEEDED


async def test_a_session_that_opens_a_stream_at_the_other_gateway_gets_its_lease_there(url: str, pair: Pair) -> None:
    a, b = pair
    former = a.api.stream(wait=60, session_id="session-of-worker-1")
    first = await on_record(url, "")
    latest = b.api.stream(wait=60, session_id="session-of-worker-1")
    await on_record(url, first)
    await a.api.submit("po-1")
    given = await asyncio.wait_for(lease_of(latest), 30)
    assert given.task_id == "po-1"
    former.cancel()


async def test_a_request_that_a_gateway_reads_late_does_not_take_the_place_of_a_later_one(url: str, pair: Pair) -> None:
    a, b = pair
    latest = b.api.stream(wait=60, session_id="session-of-worker-1", stream_number=2)
    await on_record(url, "")
    assert await a.api.lease(wait=0, session_id="session-of-worker-1", stream_number=1) is None
    await a.api.submit("po-1")
    assert (await asyncio.wait_for(lease_of(latest), 30)).task_id == "po-1"


async def on_record(url: str, before: str) -> str:
    """Wait until the process waits in another stream than before; return its id."""
    while True:
        rows = postgres.server().execute("SELECT stream_id FROM streams", postgres.name_of(url))
        if rows and rows[0][0] != before:
            return str(rows[0][0])
        await asyncio.sleep(0.02)


async def lease_of(stream: Any) -> Any:
    """The lease that a stream brings."""
    async for message in stream:
        if message.WhichOneof("event") == "lease":
            return message.lease
    raise AssertionError("the stream ended without a lease")


async def test_one_gateway_leads_and_another_when_it_has_left_or_died(gateways: Gateways) -> None:
    first, second, third = gateways(), gateways(), gateways()
    assert await first.store.leads()
    assert not await second.store.leads()
    assert not await second.store.leads(), "it does not ask again at once"
    await first.store.leave()
    second.store._led = (-10, False)
    assert await second.store.leads()
    assert not await third.store.write(sharing.take_term, "third")

    def later(tx: Any, now: Any) -> bool:
        """What is asked when the leader has said nothing for its whole term."""
        dead = type(now)(now.utc, now.elapsed_us + timedelta(seconds=sharing.TERM_SECONDS) // timedelta(microseconds=1))
        return sharing.take_term(tx, dead, "third")

    assert await third.store.write(later)


async def test_a_gateway_with_other_rules_does_not_start_beside_one_that_runs(
    url: str, tmp_path: Path, time: ManualTime
) -> None:
    async with gateway_on(url, tmp_path / "a", time):
        with pytest.raises(SettingsError, match="LEASE_SCOPE is site here and global at another gateway"):
            async with gateway_on(url, tmp_path / "b", time, lease_scope="site"):
                pass
    async with gateway_on(url, tmp_path / "b", time, lease_scope="site"):
        pass


CHANGED = (
    "UPDATE database_life SET {} = '1', "
    "written_by = CAST(CAST(CAST(pg_current_xact_id() AS text) AS bigint) % 4294967296 AS text)"
)

LIFE = {
    "a dump": "UPDATE database_life SET written_by = '3'",
    "a copy of the database of another server": CHANGED.format("system_identifier"),
    "a clone of another database": CHANGED.format("database_oid"),
    "a point in time, or a standby that was promoted": CHANGED.format("timeline"),
    "a database that lacks what it had acknowledged": "DELETE FROM database_life",
}


@pytest.mark.parametrize("what", LIFE)
async def test_a_database_that_was_put_back_starts_paused_with_open_tasks_permitted(
    url: str, tmp_path: Path, time: ManualTime, what: str
) -> None:
    async with gateway_on(url, tmp_path / "a", time) as before:
        await before.api.submit("po-1")
    async with gateway_on(url, tmp_path / "a", time) as again:
        assert await again.api.status("po-1") is TaskStatus.QUEUED, "an ordinary start is no restore"
    postgres.server().execute(LIFE[what], postgres.name_of(url))
    async with gateway_on(url, tmp_path / "a", time) as after:
        assert await after.api.status("po-1") is TaskStatus.STALE
        rows = postgres.server().execute("SELECT site, reason FROM pauses", postgres.name_of(url))
        assert [(site, reason.startswith(f"restored from {what}")) for site, reason in rows] == [("", True)]
