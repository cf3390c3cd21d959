"""How the last day went, from the history."""

from datetime import timedelta
from typing import Any

from gateway.domain.models import Actor
from gateway.operations.actions import expire_now, requeue
from gateway.operations.overview import STEPS, last_day
from tests.gateway.support.book import Book


def test_the_queue_is_followed_back_through_the_day(book: Book) -> None:
    book.submit("po-1")
    book.submit("po-2")
    book.time.advance(timedelta(hours=1))
    book.take("po-1")
    book.run(expire_now, "po-1", "its machine is off", Actor("alice"))
    book.time.advance(timedelta(minutes=20))
    book.run(requeue, "po-1", "look again", Actor("alice"))
    steps: Any = book.run(last_day)
    assert len(steps) == STEPS
    assert [step.queued for step in steps[-9:]] == [2, 2, 2, 2, 2, 2, 1, 1, 2]
    assert [step.queued for step in steps[:-9]] == [0] * (STEPS - 9)
    assert [step.decisions for step in steps[-3:]] == [1, 0, 1]
    assert sum(step.decisions for step in steps) == 2


def test_what_is_a_day_old_is_left_out(book: Book) -> None:
    book.submit("po-1")
    book.time.advance(timedelta(days=2))
    assert {step.queued for step in book.run(last_day)} == {1}
