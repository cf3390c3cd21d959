"""A real standby: promoted with and without the last commits, missing, late, and beside a primary that still runs."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gateway.database import FatalStoreError
from gateway.domain.models import Standby
from gateway.domain.states import TaskStatus
from gateway.store.port import DatabaseUnusableError, StoreUnavailableError
from tests.gateway.support import postgres
from tests.gateway.support.grpc_api import RefusedCallError
from tests.gateway.support.in_process import RunningGateway, running_gateway

pytestmark = [pytest.mark.needs("postgresql"), pytest.mark.timeout(180)]

CANCEL_WHO_WAITS = (
    "SELECT pg_cancel_backend(pid) FROM pg_stat_activity "
    "WHERE application_name = 'order-gateway writer' AND wait_event = 'SyncRep'"
)


@dataclass
class Pair:
    """A primary and its standby. `url` names both, the standby first."""

    primary: postgres.Server
    standby: postgres.Server

    @property
    def url(self) -> str:
        return f"postgresql://gateway@/postgres?host={self.standby.folder},{self.primary.folder}"

    def is_replicated(self) -> None:
        """Wait until the standby has everything that the primary has flushed."""
        ((place,),) = self.primary.execute("SELECT pg_current_wal_flush_lsn()")
        while self.standby.execute("SELECT pg_last_wal_replay_lsn() < %s::pg_lsn", "postgres", place) != [(False,)]:
            time.sleep(0.02)

    def name_the_standby(self) -> None:
        """Let commits wait for it, from now on."""
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        self.primary.execute("SELECT pg_reload_conf()")
        while self.primary.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
            time.sleep(0.02)

    def fail_over(self) -> None:
        """The primary crashes, and the standby takes its place."""
        self.primary.stop(at_once=True)
        self.standby.execute("SELECT pg_promote()")


@contextmanager
def a_folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="postgresql-", dir=postgres.FAST_FOLDER) as folder:
        yield Path(folder)


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Two servers, the second of which follows the first."""
    with a_folder() as first, a_folder() as second:
        primary = postgres.Server(first)
        standby = postgres.Server(second, lambda server: server.copy_of(primary))
        with (second / "data/postgresql.auto.conf").open("a") as settings:
            settings.write(f"primary_conninfo = 'host={first} user=gateway'\n")
        (second / "data/standby.signal").touch()
        standby.start()
        try:
            yield Pair(primary, standby)
        finally:
            standby.stop(at_once=True)
            primary.stop(at_once=True)


@asynccontextmanager
async def gateway_on(url: str, folder: Path, standby: Standby = Standby.NONE) -> AsyncIterator[RunningGateway]:
    async with running_gateway(folder, gateway_db_url=url, database_standby=standby) as running:
        yield running


async def ends(gateway: RunningGateway) -> BaseException | None:
    """Wait until the gateway has ended by itself; return why."""
    await asyncio.wait({gateway.ended}, timeout=60)
    assert gateway.ended.done()
    return gateway.ended.exception()


async def in_thread(work: Any, *arguments: Any, **named: Any) -> Any:
    return await asyncio.to_thread(work, *arguments, **named)


@asynccontextmanager
async def ending(url: str, folder: Path, standby: Standby = Standby.NONE) -> AsyncIterator[RunningGateway]:
    """A gateway of which the test expects that it ends with a fault of the database."""
    with pytest.raises(FatalStoreError):
        async with gateway_on(url, folder, standby) as gateway:
            yield gateway


async def test_a_standby_that_lacks_the_last_commits_starts_paused_and_nothing_is_ordered_twice(
    pair: Pair, tmp_path: Path
) -> None:
    async with ending(pair.url, tmp_path) as gateway:
        await gateway.api.submit("po-1")
        await in_thread(pair.is_replicated)
        await in_thread(pair.standby.stop)
        lease = await gateway.api.lease()
        assert lease is not None
        await gateway.api.renew(lease)
        assert await gateway.api.permit(lease) is not None, "acknowledged, and on the primary alone"
        await in_thread(pair.primary.stop, at_once=True)
        await in_thread(pair.standby.start)
        await in_thread(pair.standby.execute, "SELECT pg_promote()")
        assert "does not know the group" in str(await ends(gateway))
    async with gateway_on(pair.url, tmp_path) as again:
        assert await again.api.status("po-1") is TaskStatus.STALE
        assert len((await again.api.health()).pauses) == 1
        assert await again.api.lease("w2") is None
        with pytest.raises(RefusedCallError):
            await again.api.permit(lease)


async def test_a_standby_that_lacks_nothing_counts_as_a_restore_too_where_none_is_synchronous(
    pair: Pair, tmp_path: Path
) -> None:
    async with ending(pair.url, tmp_path) as gateway:
        await gateway.api.submit("po-1")
        await in_thread(pair.primary.stop)  # the standby gets everything before that ends
        await in_thread(pair.standby.execute, "SELECT pg_promote()")
        assert "a standby that was promoted" in str(await ends(gateway))
    async with gateway_on(pair.url, tmp_path) as again:
        assert await again.api.status("po-1") is TaskStatus.STALE
        assert len((await again.api.health()).pauses) == 1


async def test_a_synchronous_standby_that_is_promoted_is_no_more_than_a_failover(pair: Pair, tmp_path: Path) -> None:
    await in_thread(pair.name_the_standby)
    async with gateway_on(pair.url, tmp_path / "a", Standby.SYNCHRONOUS) as gateway:
        await gateway.api.submit("po-1")
        lease = await gateway.api.lease()
        assert lease is not None
        await gateway.api.renew(lease)
        failing_over = asyncio.create_task(in_thread(pair.fail_over))
        filed = [f"po-{number}" for number in range(2, 22)]
        await asyncio.gather(*map(gateway.api.submit, filed))
        await failing_over
        assert {task.task_id for task in (await gateway.api.list(page_size=200)).tasks} == {"po-1", *filed}
        await gateway.api.renew(lease)
        (pause,) = (await gateway.api.health()).pauses
        assert "no standby confirms" in pause.reason, "the new primary has none yet"
        assert await gateway.api.status("po-1") is TaskStatus.LEASED
        async with gateway_on(pair.url, tmp_path / "b", Standby.SYNCHRONOUS) as other:
            assert await other.api.status("po-1") is TaskStatus.LEASED
    assert pair.standby.execute("SELECT count(*) FROM restores") == [(0,)]


async def test_without_a_synchronous_standby_nothing_is_leased_or_permitted(
    pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with gateway_on(pair.url, tmp_path, Standby.SYNCHRONOUS) as gateway:
        assert "synchronous_standby_names is empty: until it names a standby, nothing is leased" in caplog.text
        await gateway.api.submit("po-1")
        assert await gateway.api.lease() is None
        (pause,) = (await gateway.api.health()).pauses
        assert (pause.site, pause.paused_by) == ("", "gateway")
        waiting = asyncio.create_task(gateway.api.lease(wait=60))
        await in_thread(pair.name_the_standby)
        lease = await waiting
        assert lease is not None
        await gateway.api.renew(lease)
        pair.primary.execute("ALTER SYSTEM SET synchronous_standby_names = ''")
        pair.primary.execute("SELECT pg_reload_conf()")
        while not (await gateway.api.health()).pauses:
            pass  # the server's processes have yet to read the setting
        with pytest.raises(RefusedCallError, match="no standby confirms"):
            await gateway.api.permit(lease)


async def test_a_commit_cancelled_while_it_waits_for_its_standby_is_asked_about(
    pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await in_thread(pair.name_the_standby)
    async with gateway_on(pair.url, tmp_path, Standby.SYNCHRONOUS) as gateway:
        await in_thread(pair.standby.stop)
        filing = asyncio.create_task(gateway.api.submit("po-1"))
        cancelled: list[Any] = []
        while not cancelled:
            cancelled = await in_thread(pair.primary.execute, CANCEL_WHO_WAITS)
            await asyncio.sleep(0.02)
        assert not filing.done(), "it is not known to be on the standby"
        await in_thread(pair.standby.start)
        assert (await filing).created
        assert "a commit without an answer was" in caplog.text
        await in_thread(pair.is_replicated)
    assert pair.standby.execute("SELECT count(*) FROM tasks") == [(1,)]


async def test_an_old_primary_that_goes_on_without_its_standby_acknowledges_nothing(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.postgres.session.ANSWER_SECONDS", 1.0)
    monkeypatch.setattr("gateway.store.postgres.attempts.ASK_SECONDS", 2.0)
    await in_thread(pair.name_the_standby)
    async with ending(pair.primary.url("postgres"), tmp_path, Standby.SYNCHRONOUS) as gateway:
        await in_thread(pair.standby.execute, "SELECT pg_promote()")
        with pytest.raises(RefusedCallError) as told:
            await gateway.api.submit("po-1")
        assert told.value.status == "UNAVAILABLE"
        assert "nobody could be asked" in str(await ends(gateway))


async def test_where_the_url_names_several_the_primary_is_found_and_a_standby_alone_refused(
    pair: Pair, tmp_path: Path
) -> None:
    for url in (pair.url, f"{pair.url}&target_session_attrs=read-write"):
        async with gateway_on(url, tmp_path) as gateway:
            await gateway.api.submit("po-1")
    with pytest.raises(DatabaseUnusableError, match="it is a standby, which takes no writes; name the primary") as told:
        async with gateway_on(pair.standby.url("postgres"), tmp_path):
            pass
    assert "\n" not in str(told.value)
    pair.primary.stop()
    with pytest.raises(StoreUnavailableError) as told_of_both:
        async with gateway_on(pair.url, tmp_path):
            pass
    assert "\n" not in str(told_of_both.value)
