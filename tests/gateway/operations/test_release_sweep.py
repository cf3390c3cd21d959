"""A task is released at its moment: the sweep waits for that moment itself, and a nearer one wakes it."""

import asyncio
from datetime import timedelta

import pytest

from gateway.dispatch.notifier import Notifier
from gateway.domain.instant import utc_text
from gateway.orders.topics import HELD
from gateway.sweeps import release
from gateway.sweeps.release import ReleaseSweep
from tests.gateway.operations.book_store import BookStore
from tests.gateway.support.book import Book


@pytest.fixture
def notifier(monkeypatch: pytest.MonkeyPatch) -> Notifier:
    """One without a poll behind it: what happens is the sweep's own doing."""
    monkeypatch.setattr(release, "POLL_SECONDS", 600.0)
    return Notifier()


def submit(book: Book, task_id: str, seconds: float) -> None:
    book.submit(task_id, not_before=utc_text(book.time.wall + timedelta(seconds=seconds)))


async def test_it_wakes_at_the_moment_by_itself(book: Book, notifier: Notifier) -> None:
    submit(book, "po-1", 0.3)
    running = asyncio.create_task(ReleaseSweep(BookStore(book), notifier).run_once())
    await asyncio.sleep(0)
    book.time.advance(0.3)
    assert await asyncio.wait_for(running, 60) == {"released": 1}
    assert book.open() is not None


async def test_a_nearer_moment_wakes_it(book: Book, notifier: Notifier) -> None:
    submit(book, "po-1", 300)
    sweep = ReleaseSweep(BookStore(book), notifier)
    running = asyncio.create_task(sweep.run_once())
    while HELD not in notifier.topics():  # noqa: ASYNC110 - that it waits gives no other signal
        await asyncio.sleep(0)
    book.notified.clear()
    submit(book, "po-2", 0)
    submit(book, "po-3", 0.1)
    assert HELD in book.notified
    notifier.publish(book.notified)
    assert await asyncio.wait_for(running, 60) == {}
    running = asyncio.create_task(sweep.run_once())
    await asyncio.sleep(0)
    book.time.advance(0.1)
    assert await asyncio.wait_for(running, 60) == {"released": 1}
    assert book.task("po-3").held_until is None
    assert book.task("po-1").held_until is not None
