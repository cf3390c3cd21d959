"""Connections that are lost at each moment, and what callers are told."""

import asyncio
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import psycopg
import pytest

from gateway.domain.instant import Instant
from gateway.domain.models import Actor
from gateway.store import history, workers
from gateway.store.port import ReadTransaction, StoreUnavailableError, Transaction
from gateway.store.postgres import connection as connections
from gateway.store.postgres.attempts import WentBackError
from gateway.store.postgres.failures import ConnectionLostError, Fate, fate_of
from gateway.store.postgres.session import Session
from tests.gateway.store.postgres.conftest import Gateway, Gateways, end_sessions
from tests.gateway.support import postgres

pytestmark = pytest.mark.needs("postgresql")


def write_down(tx: Transaction, now: Instant, reason: str) -> str:
    """Something that shows when it was done twice."""
    history.append(tx, now, "", "fault", Actor("test"), reason=reason)
    tx.notify(reason)
    return reason


def reasons(url: str) -> list[str]:
    """What was written down, in order."""
    rows = postgres.server().execute("SELECT reason FROM events ORDER BY sequence", postgres.name_of(url))
    return [reason for (reason,) in rows]


def once(fault: Callable[[], None]) -> Callable[[], None]:
    """The fault at the first call only."""
    calls: list[None] = []

    def called() -> None:
        calls.append(None)
        if len(calls) == 1:
            fault()

    return called


async def test_a_session_lost_before_the_commit_lets_the_group_run_again(one: Gateway, url: str) -> None:
    fault = once(lambda: None if end_sessions(url) else pytest.fail("nobody was connected"))

    def operation(tx: Transaction, now: Instant) -> str:
        write_down(tx, now, "a")
        fault()
        return write_down(tx, now, "b")

    assert await one.store.write(operation) == "b"
    assert reasons(url) == ["a", "b"]
    assert one.published == [{"a", "b"}]


async def test_a_session_lost_while_nothing_happens_is_not_noticed_by_anybody(one: Gateway, url: str) -> None:
    await one.store.write(write_down, "a")
    assert end_sessions(url) == 1
    await one.store.write(write_down, "b")
    assert reasons(url) == ["a", "b"]


async def test_who_goes_while_the_group_is_at_work_gets_nothing_done(one: Gateway, url: str) -> None:
    begun, gone = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def first(tx: Transaction, now: Instant) -> str:
        loop.call_soon_threadsafe(begun.set)
        assert gone.wait(60)
        return write_down(tx, now, "a")

    stays = asyncio.create_task(one.store.write(first))
    goes = asyncio.create_task(one.store.write(write_down, "b"))
    await asyncio.wait_for(begun.wait(), 60)
    goes.cancel()
    with pytest.raises(asyncio.CancelledError):
        await goes
    gone.set()
    assert await stays == "a"
    assert reasons(url) == ["a"]


def lose_the_answer(gateway: Gateway, url: str, *, after_the_commit: bool) -> None:
    """Let the next COMMIT get no answer: it was made, or the session has ended before it came to the server."""
    commit = gateway.log.commit

    def lose() -> None:
        end_sessions(url)
        raise ConnectionLostError("no answer, on purpose")

    fault = once(lose)

    def lost(session: Session) -> None:
        if after_the_commit:
            commit(session)
        fault()
        if not after_the_commit:
            commit(session)

    gateway.log.commit = lost  # type: ignore[method-assign]


@pytest.mark.parametrize("after_the_commit", [True, False])
async def test_a_commit_without_an_answer_is_asked_for_and_told_as_it_was(
    one: Gateway, url: str, after_the_commit: bool
) -> None:
    await one.store.write(write_down, "before")
    lose_the_answer(one, url, after_the_commit=after_the_commit)
    outcomes = await asyncio.gather(*(one.store.write(write_down, f"w{number}") for number in range(5)))
    assert outcomes == [f"w{number}" for number in range(5)]
    assert sorted(reasons(url)) == ["before", *outcomes]
    assert one.published == [{"before"}, set(outcomes)]
    assert one.fatal == []


class Panic(psycopg.errors.DiskFull):
    """What a server says that finds no room for its log, and crashes."""

    diag = SimpleNamespace(severity_nonlocalized="PANIC")  # type: ignore[assignment]


async def test_a_commit_in_which_the_server_crashed_is_asked_for(one: Gateway, url: str) -> None:
    await one.store.write(write_down, "a")
    commit = one.log.commit

    def crash() -> None:
        raise Panic("no room for the log, on purpose")

    fault = once(crash)

    def crashed(session: Session) -> None:
        commit(session)
        fault()

    one.log.commit = crashed  # type: ignore[method-assign]
    await one.store.write(write_down, "b")
    assert reasons(url) == ["a", "b"]


async def test_a_commit_broken_off_while_it_waited_for_its_standby_is_asked_for(one: Gateway, url: str) -> None:
    await one.store.write(write_down, "a")
    commit = one.log.commit
    warn = once(lambda: session_of(one).warnings.append("01000"))

    def warned(session: Session) -> None:
        warn()
        commit(session)

    one.log.commit = warned  # type: ignore[method-assign]
    await one.store.write(write_down, "b")
    assert reasons(url) == ["a", "b"]


def session_of(gateway: Gateway) -> Session:
    session = gateway.store._writer._attempts._session
    assert session is not None
    return session


async def test_whoever_stands_still_in_a_transaction_holds_up_the_others_for_two_seconds(
    gateways: Gateways, url: str
) -> None:
    frozen, other = gateways(), gateways()
    held, go_on = threading.Event(), threading.Event()
    stand_still = once(lambda: (held.set(), go_on.wait(30))[0])

    def operation(tx: Transaction, now: Instant) -> str:
        write_down(tx, now, "of the frozen one")
        workers.everyone(tx)
        stand_still()
        return write_down(tx, now, "when it goes on")

    freezing = asyncio.create_task(frozen.store.write(operation))
    await asyncio.to_thread(held.wait, 30)
    begun = time.monotonic()
    await other.store.write(write_down, "of the other one")
    assert time.monotonic() - begun < 6
    assert reasons(url) == ["of the other one"]
    go_on.set()
    await freezing
    assert reasons(url) == ["of the other one", "of the frozen one", "when it goes on"]


async def test_a_lock_that_is_not_had_in_time_is_told_and_nothing_is_stored(
    one: Gateway, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections._OPTIONS, "lock_timeout", "100ms")
    with psycopg.connect(url) as other:
        other.execute("SELECT pg_advisory_xact_lock(1329021268)")
        with pytest.raises(StoreUnavailableError, match="lock timeout"):
            await one.store.write(write_down, "a")
    await one.store.write(write_down, "b")
    assert reasons(url) == ["b"]


async def test_a_nul_in_a_text_is_refused_and_disturbs_nobody(one: Gateway, url: str) -> None:
    outcomes = await asyncio.gather(
        one.store.write(write_down, "a"),
        one.store.write(write_down, "be\0fore"),
        one.store.write(write_down, "c"),
        return_exceptions=True,
    )
    assert (outcomes[0], outcomes[2]) == ("a", "c")
    assert isinstance(outcomes[1], psycopg.DataError)
    assert reasons(url) == ["a", "c"]


async def test_a_migration_by_another_gateway_is_not_noticed_by_anybody(one: Gateway, url: str) -> None:
    await one.store.write(workers.seen, "w1")
    await one.store.read(lambda tx, _now: workers.everyone(tx))
    postgres.server().execute("ALTER TABLE workers ADD COLUMN later bigint", postgres.name_of(url))
    found = await one.store.write(lambda tx, _now: workers.everyone(tx))
    assert [worker.worker_id for worker in found] == ["w1"]
    found = await one.store.read(lambda tx, _now: workers.everyone(tx))
    assert [worker.worker_id for worker in found] == ["w1"]


async def test_a_reader_that_is_lost_reads_again(one: Gateway, url: str) -> None:
    await one.store.write(workers.seen, "w1")
    fault = once(lambda: None if end_sessions(url, "reader") else pytest.fail("nobody was connected"))

    def look(tx: ReadTransaction, _now: Instant) -> int:
        fault()
        return len(workers.everyone(tx))

    assert await one.store.read(look) == 1


async def test_a_database_that_has_lost_what_it_acknowledged_ends_the_process(one: Gateway, url: str) -> None:
    await one.store.write(write_down, "a")
    postgres.server().execute("DELETE FROM store_groups", postgres.name_of(url))
    end_sessions(url)
    with pytest.raises(StoreUnavailableError, match="does not know"):
        await one.store.write(write_down, "b")
    assert [type(error) for error in one.fatal] == [WentBackError]
    assert reasons(url) == ["a"]


async def test_a_deadlock_lets_the_group_run_again(one: Gateway, url: str) -> None:
    def deadlock() -> None:
        raise psycopg.errors.DeadlockDetected

    fault = once(deadlock)

    def operation(tx: Transaction, now: Instant) -> str:
        write_down(tx, now, "a")
        fault()
        return "done"

    assert await one.store.write(operation) == "done"
    assert reasons(url) == ["a"]


@pytest.mark.parametrize(
    ("error", "fate"),
    [
        (psycopg.errors.DiskFull, Fate.UNAVAILABLE),
        (psycopg.errors.OutOfMemory, Fate.UNAVAILABLE),
        (psycopg.errors.IoError, Fate.UNAVAILABLE),
        (psycopg.errors.LockNotAvailable, Fate.UNAVAILABLE),
        (psycopg.errors.QueryCanceled, Fate.UNAVAILABLE),
        (psycopg.errors.DataCorrupted, Fate.UNAVAILABLE),
        (Panic, Fate.RECONNECT),
        (psycopg.errors.AdminShutdown, Fate.RECONNECT),
        (psycopg.errors.CrashShutdown, Fate.RECONNECT),
        (psycopg.errors.CannotConnectNow, Fate.RECONNECT),
        (psycopg.errors.IdleInTransactionSessionTimeout, Fate.RECONNECT),
        (psycopg.errors.ReadOnlySqlTransaction, Fate.RECONNECT),
        (psycopg.errors.FeatureNotSupported, Fate.RECONNECT),
        (ConnectionLostError, Fate.RECONNECT),
        (psycopg.errors.SerializationFailure, Fate.AGAIN),
        (psycopg.errors.DeadlockDetected, Fate.AGAIN),
        (psycopg.errors.UniqueViolation, Fate.OF_THE_OPERATION),
        (LookupError, Fate.OF_THE_OPERATION),
    ],
)
def test_what_follows_an_error(error: type[Exception], fate: Fate) -> None:
    assert fate_of(error("on purpose")) is fate
