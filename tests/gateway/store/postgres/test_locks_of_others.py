"""Somebody else's transaction stands in the way of a group: what a client is told, and that it may ask again."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState
from gateway.store.postgres import connection as connections
from gateway.store.postgres import engine, schema
from tests.gateway.store.postgres.conftest import end_sessions
from tests.gateway.support import postgres
from tests.gateway.support.grpc_api import RefusedCallError
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime

pytestmark = pytest.mark.needs("postgresql")

TASK = "SELECT 1 FROM tasks WHERE task_id = 'po-1' FOR UPDATE"
LEASE = "SELECT 1 FROM leases WHERE task_id = 'po-1' FOR UPDATE"
"""An acknowledgement changes the row of the lease, then that of the task; whoever goes the other way can meet it."""


@pytest.fixture
async def gateway(url: str, tmp_path: Path, time: ManualTime) -> AsyncIterator[RunningGateway]:
    """A gateway."""
    async with running_gateway(tmp_path, time, gateway_db_url=url) as running:
        yield running


@pytest.fixture
def limits(gateway: RunningGateway, url: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Lets its sessions have the settings of the test's parameter from now on."""
    for name, value in request.param.items():
        monkeypatch.setitem(connections._OPTIONS, name, value)
    end_sessions(url)


def counted(url: str, of: str, *parameters: Any) -> int:
    """How many rows there are of what the SQL names."""
    ((count,),) = postgres.server().execute(f"SELECT count(*) FROM {of}", postgres.name_of(url), *parameters)  # noqa: S608
    return int(count)


def events(url: str, kind: str) -> int:
    return counted(url, "events WHERE subject = 'po-1' AND kind = %s", kind)


def in_the_way(sql: str, url: str) -> Any:
    """A transaction of somebody else that holds a row until it is closed."""
    other = psycopg.connect(url)
    other.execute(sql.encode())
    return other


@pytest.mark.parametrize(
    "limits",
    [{"lock_timeout": "500ms"}, {"statement_timeout": "1s", "lock_timeout": "0"}],
    indirect=True,
    ids=["lock timeout", "statement timeout"],
)
@pytest.mark.usefixtures("limits")
async def test_who_waits_too_long_for_a_row_is_told_unavailable_with_nothing_stored_and_may_ask_again(
    gateway: RunningGateway, url: str
) -> None:
    lease = await gateway.api.take("po-1")
    with in_the_way(TASK, url):
        with pytest.raises(RefusedCallError) as told:
            await gateway.api.report(lease, OrderState.IN_CART, 1)
        assert (told.value.status, told.value.reason) == ("UNAVAILABLE", Reason.STORE_UNAVAILABLE)
        assert events(url, "report") == counted(url, "reports") == 0
        # What needs another row goes on.
        await gateway.api.submit("po-2")
    assert (await gateway.api.report(lease, OrderState.IN_CART, 1)).recorded
    assert (events(url, "report"), counted(url, "reports")) == (1, 1)


MEETING = """
CREATE FUNCTION wait_until_somebody_wants_this_lease() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    WHILE NOT pg_try_advisory_xact_lock_shared(31, 1)
          AND NOT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid) LOOP
        PERFORM pg_sleep(0.002);
    END LOOP;
    RETURN NULL;
END $$;
CREATE TRIGGER meeting AFTER UPDATE ON leases FOR EACH ROW EXECUTE FUNCTION wait_until_somebody_wants_this_lease();
"""
"""While somebody holds the advisory lock, whoever has changed a lease goes on when its row is waited for.

A wait looks for a deadlock once, at its deadlock_timeout: a circle that closes later is not found by it.
"""


@contextmanager
def meets(url: str, times: int) -> Iterator[threading.Event]:
    """Somebody who takes the same two rows the other way round, so often; the gateway is who gives way."""
    begun, over = threading.Event(), threading.Event()

    def meet() -> None:
        with psycopg.connect(url, options="-c deadlock_timeout=10min") as other:
            other.execute(MEETING.encode())
            other.execute(b"SELECT pg_advisory_lock(31, 1); COMMIT; BEGIN; " + TASK.encode())
            begun.set()
            for left in reversed(range(times)):
                wait_for_the_gateway(url)
                other.execute(LEASE.encode())
                if left:
                    other.execute(b"ROLLBACK; BEGIN; " + TASK.encode())
            other.execute(b"SELECT pg_advisory_unlock(31, 1); ROLLBACK")
        over.set()

    thread = threading.Thread(target=meet)
    thread.start()
    assert begun.wait(60)
    try:
        yield over
    finally:
        thread.join(60)


def wait_for_the_gateway(url: str) -> None:
    """Until it has changed the lease, and waits for somebody to want it."""
    until = time.monotonic() + 60
    while not counted(url, "pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'"):
        assert time.monotonic() < until
        time.sleep(0.005)


@pytest.mark.parametrize("limits", [{"deadlock_timeout": "50ms"}], indirect=True)
@pytest.mark.usefixtures("limits")
@pytest.mark.parametrize(("times", "answered"), [(1, True), (5, True), (6, False)])
async def test_a_deadlock_is_not_noticed_by_a_client_unless_it_comes_again_and_again(
    gateway: RunningGateway, url: str, times: int, answered: bool
) -> None:
    await gateway.api.submit("po-1")
    lease = await gateway.api.lease()
    assert lease is not None
    with meets(url, times) as over:
        if answered:
            await gateway.api.renew(lease)
        else:
            with pytest.raises(RefusedCallError) as told:
                await gateway.api.renew(lease)
            assert (told.value.status, told.value.reason) == ("UNAVAILABLE", Reason.STORE_UNAVAILABLE)
            assert events(url, "acknowledge") == 0
        assert await asyncio.to_thread(over.wait, 60)
    if not answered:
        await gateway.api.renew(lease)
    assert events(url, "acknowledge") == 1


def test_who_is_cut_off_while_it_migrates_does_not_keep_the_lock_of_those_who_migrate(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "CUT_OFF_SECONDS", 1)
    held = "pg_locks JOIN pg_database ON database = pg_database.oid WHERE locktype = 'advisory' AND datname = %s"
    with engine.connected(url) as (_, cut_off), schema.migration_lock(cut_off, lambda _: None):
        until = time.monotonic() + 30
        while counted(url, held, postgres.name_of(url)):
            assert time.monotonic() < until
            time.sleep(0.02)
        with engine.connected(url) as (_, next_one), schema.migration_lock(next_one, pytest.fail):
            pass
        # Whoever was cut off notices at its next step.
        cut_off.close()
