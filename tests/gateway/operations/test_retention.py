"""Payloads of tasks that ended long ago go; keys, history and the comparison of a resubmission stay."""

from datetime import timedelta

import pytest

from gateway.domain.states import OrderState, TaskStatus
from gateway.sweeps.retention import RetentionSweep
from tests.gateway.operations.book_store import BookStore
from tests.gateway.operations.person import bring
from tests.gateway.support.book import Book

INTENT = '{"items":[{"item_url":"https://shop.example/1","quantity":1}],"max_total_yen":1000}'
KEEP = timedelta(days=30)


async def sweep(book: Book) -> int:
    return (await RetentionSweep(BookStore(book), KEEP).run_once())["dropped"]


def end(book: Book, task_id: str, intent_json: str = INTENT) -> None:
    book.submit(task_id, intent_json=intent_json)
    lease = book.take(task_id, request=book.request(session=f"session-that-took-{task_id}"))
    book.report(lease, OrderState.PAID, sequence=1, terminal=True)


async def test_an_old_key_is_still_known_and_its_intent_still_compared(book: Book) -> None:
    end(book, "po-1")
    book.time.advance(KEEP)
    assert await sweep(book) == 0
    book.time.advance(1)
    assert await sweep(book) == 1
    assert await sweep(book) == 0
    task = book.task()
    assert (task.intent_json, task.status) == ("{}", TaskStatus.SUCCEEDED)
    assert len(book.rows("SELECT * FROM reports")) == 1
    assert book.events() == ["submit", "lease", "acknowledge", "finish"]

    again = book.submit("po-1", intent_json=INTENT)
    assert (again.created, again.intent_matches, again.status) == (False, True, TaskStatus.SUCCEEDED)
    reordered = '{"max_total_yen":1000, "items":[{"quantity":1,"item_url":"https://shop.example/1"}]}'
    assert book.submit("po-1", intent_json=reordered).intent_matches
    assert not book.submit("po-1", intent_json=INTENT.replace("1000", "1000.0")).intent_matches
    assert not book.submit("po-1", intent_json="{}").intent_matches
    assert book.task() == task


async def test_many_in_one_round(book: Book) -> None:
    for number in range(60):
        end(book, f"po-{number}")
    book.time.advance(KEEP + timedelta(seconds=1))
    assert await sweep(book) == 60


@pytest.mark.parametrize(
    "status", [TaskStatus.QUEUED, TaskStatus.LEASED, TaskStatus.RUNNING, TaskStatus.STALE, TaskStatus.NEEDS_HUMAN]
)
async def test_what_is_not_over_keeps_its_payload(book: Book, status: TaskStatus) -> None:
    bring(book, status)
    book.time.advance(KEEP * 2)
    assert await sweep(book) == 0


async def test_what_alerts_keeps_its_payload(book: Book) -> None:
    lease = book.take()
    book.report(lease, OrderState.PAID, sequence=1, terminal=True)
    book.report(lease, OrderState.CANCELLED, sequence=2)
    book.time.advance(KEEP * 2)
    assert await sweep(book) == 0
