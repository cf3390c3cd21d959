"""Changes commit together or not at all; whoever asked is answered once they are durable; hooks are part of it."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from gateway.account_queries.transition import file, transition
from gateway.domain.account_queries import QueryError, QueryEvent, QueryKind, QueryStatus, QuerySubmission
from gateway.domain.instant import Instant
from gateway.store import account_queries, workers
from gateway.store.port import RowCountError, Transaction
from tests.gateway.store.conformance.engines import Engine


def seen(tx: Transaction, now: Instant, worker_id: str) -> str:
    workers.seen(tx, now, worker_id)
    return worker_id


def both_seen_and_told(tx: Transaction, now: Instant, *worker_ids: str) -> None:
    for worker_id in worker_ids:
        workers.seen(tx, now, worker_id)
        tx.notify(worker_id)


def raises(tx: Transaction, now: Instant) -> None:
    both_seen_and_told(tx, now, "of-the-one-that-raises")
    raise LookupError("on purpose")


def breaks_a_rule(tx: Transaction, now: Instant) -> None:
    seen(tx, now, "of-the-one-that-breaks-a-rule")
    tx.change("query_result_insert", query_id="none", result_json="{}")


def moves_no_row(tx: Transaction, now: Instant) -> None:
    seen(tx, now, "of-the-one-that-moves-no-row")
    tx.change_one("worker_forget", worker_id="nobody")


def adds_no_row(tx: Transaction, now: Instant) -> None:
    seen(tx, now, "of-the-one-that-adds-no-row")
    tx.insert("catalog_unknown_add", site="none", account="", order_number="none", at=now.utc)


def committed(engine: Engine) -> set[str]:
    """Which workers somebody else sees."""
    return {row["worker_id"] for row in engine.execute("SELECT worker_id FROM workers")}


async def test_the_changes_of_an_operation_commit_together(engine: Engine) -> None:
    with engine.held_commits() as begun:
        writing = asyncio.create_task(engine.store.write(both_seen_and_told, "w1", "w2"))
        await asyncio.wait_for(begun.wait(), 60)
        assert committed(engine) == set()
    await writing
    assert committed(engine) == {"w1", "w2"}


async def test_an_answer_and_a_notification_come_when_the_change_is_durable_and_not_before(engine: Engine) -> None:
    with engine.held_commits() as begun:
        writing = asyncio.create_task(engine.store.write(both_seen_and_told, "w1"))
        await asyncio.wait_for(begun.wait(), 60)
        assert not writing.done()
        assert engine.published == []
    await writing
    assert committed(engine) == {"w1"}
    assert engine.published == [{"w1"}]


@pytest.mark.parametrize(
    ("fault", "error"),
    [(raises, LookupError), (breaks_a_rule, None), (moves_no_row, RowCountError), (adds_no_row, RowCountError)],
)
async def test_an_exception_undoes_the_changes_of_its_own_operation_and_of_no_other(
    engine: Engine, fault: Callable[[Transaction, Instant], None], error: type[Exception] | None
) -> None:
    outcomes = await asyncio.gather(
        engine.store.write(both_seen_and_told, "w1"),
        engine.store.write(fault),
        engine.store.write(both_seen_and_told, "w2"),
        return_exceptions=True,
    )
    assert (outcomes[0], outcomes[2]) == (None, None)
    assert isinstance(outcomes[1], error or engine.violation)
    assert committed(engine) == {"w1", "w2"}
    assert engine.published == [{"w1", "w2"}]


def expired_query(tx: Transaction, now: Instant, query_id: str) -> None:
    file(tx, now, QuerySubmission(query_id, "sandbox", QueryKind.ORDER_LIST, "{}"), now.elapsed_us)
    query = account_queries.find(tx, query_id)
    assert query is not None
    transition(tx, now, query, QueryEvent.EXPIRE, QueryStatus.EXPIRED, error=QueryError(0, "too old"))


async def test_two_rows_where_one_should_move_are_a_fault_and_stay(engine: Engine) -> None:
    for query_id in ("q-1", "q-2"):
        await engine.store.write(expired_query, query_id)
    with pytest.raises(RowCountError, match="moved 2 rows"):
        await engine.store.write(
            lambda tx, now: tx.change_one("queries_prune", completed_before_us=now.elapsed_us, count=5)
        )
    assert await engine.store.write(lambda tx, now: account_queries.prune(tx, now.elapsed_us, 5)) == 2


async def test_what_waits_together_is_committed_together(engine: Engine) -> None:
    commits = engine.count_commits()
    await asyncio.gather(*(engine.store.write(seen, f"w{number}") for number in range(100)))
    assert len(committed(engine)) == 100
    assert commits() <= 3


async def test_an_operation_whose_caller_has_gone_before_it_began_is_not_run(engine: Engine) -> None:
    writing = asyncio.create_task(engine.store.write(seen, "gone"))
    await asyncio.sleep(0)
    writing.cancel()
    await engine.store.write(seen, "there")
    assert committed(engine) == {"there"}


async def test_cancelling_callers_at_any_point_stops_nobody_else(engine: Engine) -> None:
    for turns in range(12):
        writing = [asyncio.create_task(engine.store.write(seen, f"w{number}")) for number in range(3)]
        for _ in range(turns):
            await asyncio.sleep(0)
        for one in writing:
            one.cancel()
        await asyncio.wait(writing)
    await engine.store.write(seen, "last")
    assert "last" in committed(engine)


async def test_what_is_queued_at_the_close_is_still_written(engine: Engine) -> None:
    writing = [asyncio.create_task(engine.store.write(seen, f"w{number}")) for number in range(300)]
    await asyncio.sleep(0)
    await engine.close()
    assert [await one for one in writing] == [f"w{number}" for number in range(300)]


async def test_a_hook_commits_with_what_it_follows_and_its_callback_comes_after_in_the_loop_s_thread(
    engine: Engine,
) -> None:
    heard: list[tuple[set[str], threading.Thread]] = []

    def hook(tx: Transaction, now: Instant) -> Callable[[], None]:
        both_seen_and_told(tx, now, "of-the-hook")
        return lambda: heard.append((committed(engine), threading.current_thread()))

    engine.store.add_pre_commit_hook("w1", lambda _notified: hook)
    with engine.held_commits() as begun:
        writing = asyncio.create_task(engine.store.write(both_seen_and_told, "w1"))
        await asyncio.wait_for(begun.wait(), 60)
        assert committed(engine) == set()
        assert heard == []
    await writing
    assert heard == [({"w1", "of-the-hook"}, threading.current_thread())]
    assert engine.published == [{"w1", "of-the-hook"}]
    await engine.store.write(both_seen_and_told, "w2")
    assert len(heard) == 1


async def test_a_hook_is_prepared_in_the_loop_s_thread_and_may_have_nothing_to_do(engine: Engine) -> None:
    prepared: list[threading.Thread] = []
    engine.store.add_pre_commit_hook("w1", lambda _notified: prepared.append(threading.current_thread()))  # type: ignore[arg-type, func-returns-value]
    await engine.store.write(both_seen_and_told, "w1")
    assert prepared == [threading.current_thread()]
    assert committed(engine) == {"w1"}


async def test_a_hook_that_raises_is_undone_alone_and_so_is_one_that_cannot_be_prepared(engine: Engine) -> None:
    def unprepared(_notified: object) -> None:
        raise LookupError("on purpose")

    engine.store.add_pre_commit_hook("w1", lambda _notified: raises)
    engine.store.add_pre_commit_hook("w2", unprepared)
    for worker_id in ("w1", "w2"):
        await engine.store.write(both_seen_and_told, worker_id)
    assert committed(engine) == {"w1", "w2"}
    assert engine.published == [{"w1"}, {"w2"}]
