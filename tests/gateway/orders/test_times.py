"""From when an order is handed out, until when permitted (docs/specification.md#times), to the microsecond."""

from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.instant import utc_text
from gateway.domain.leases import Lease, Permit
from gateway.domain.refusals import Reason
from gateway.domain.states import TaskStatus
from gateway.operations.actions import requeue
from gateway.orders import due
from gateway.orders.due import end_late, release_held
from gateway.orders.read import health
from tests.gateway.support.book import UPSTREAM, Book, reason
from tests.gateway.support.manual_time import TICK

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def at(book: Book, delay: timedelta) -> str:
    """A moment from now."""
    return utc_text(book.time.wall + delay)


def submit(book: Book, task_id: str = "po-1", **delays: timedelta) -> None:
    """File a task with times that are so far away."""
    book.submit(task_id, **{name: at(book, delay) for name, delay in delays.items()})


def test_a_task_is_not_handed_out_one_tick_before_its_time_and_is_at_it(book: Book) -> None:
    submit(book, not_before=HOUR)
    assert book.open() is None
    book.time.advance(HOUR - TICK)
    assert book.open() is None
    book.time.advance(TICK)
    lease = book.open()
    assert lease is not None
    assert lease.task_id == "po-1"


def test_a_time_that_has_passed_keeps_nothing_back(book: Book) -> None:
    submit(book, not_before=-HOUR)
    assert book.task().held_until is None
    assert book.open() is not None


def test_a_task_that_is_kept_back_lets_others_pass_and_comes_in_its_turn(book: Book) -> None:
    submit(book, "later", not_before=HOUR)
    submit(book, "first")
    submit(book, "second")
    lease = book.open()
    assert lease is not None
    assert lease.task_id == "first"
    book.renew(lease)
    book.report(lease, terminal=True, sequence=1)
    book.time.advance(HOUR)
    following = book.open()
    assert following is not None
    assert following.task_id == "later", "it was filed before the other one"


def test_a_task_that_is_kept_back_does_not_count_as_unclaimed(book: Book) -> None:
    submit(book, not_before=HOUR)
    book.time.advance(HOUR - TICK)
    assert book.run(health, book.policy).stale_queued_tasks == ()
    book.time.advance(TICK)
    assert book.run(release_held) == 1
    assert book.run(health, book.policy).stale_queued_tasks == ()
    book.time.advance(book.policy.task_unclaimed_after + TICK)
    (waiting,) = book.run(health, book.policy).stale_queued_tasks
    assert waiting.task_id == "po-1"


def test_a_task_that_is_kept_back_can_be_cancelled(book: Book) -> None:
    submit(book, not_before=HOUR)
    book.cancel()
    book.time.advance(2 * HOUR)
    assert book.open() is None
    assert book.status() is TaskStatus.FAILED


def test_a_queued_task_ends_one_tick_after_its_time_and_not_at_it(book: Book) -> None:
    submit(book, not_after=HOUR)
    book.time.advance(HOUR)
    assert book.run(end_late) == 0
    book.time.advance(TICK)
    assert book.run(end_late) == 1
    assert book.status() is TaskStatus.FAILED
    (event,) = book.rows("SELECT actor, reason FROM events WHERE kind = 'too_late'")
    assert event == {"actor": "gateway", "reason": "too late, never taken"}


@pytest.mark.parametrize(("late", "taken"), [(timedelta(), True), (TICK, False)])
def test_a_lease_is_judged_by_the_time_itself_without_any_sweep(book: Book, late: timedelta, taken: bool) -> None:
    submit(book, not_after=HOUR)
    book.time.advance(HOUR + late)
    assert (book.open() is not None) is taken
    assert book.status() is (TaskStatus.LEASED if taken else TaskStatus.FAILED)


@pytest.mark.parametrize(("late", "permitted"), [(timedelta(), True), (TICK, False)])
def test_a_permit_is_judged_by_the_time_itself(book: Book, late: timedelta, permitted: bool) -> None:
    submit(book, not_after=MINUTE)
    lease = book.take()
    book.time.advance(MINUTE + late)
    outcome = book.permit(lease)
    if permitted:
        assert isinstance(outcome, Permit)
    else:
        assert reason(outcome) is Reason.TOO_LATE
        assert book.task().submit_permitted_at is None


def test_a_permit_that_was_granted_in_time_stands_after_it(book: Book) -> None:
    submit(book, not_after=MINUTE)
    lease = book.take()
    book.time.advance(MINUTE)
    granted = book.permit(lease)
    book.time.advance(TICK)
    again = book.permit(lease)
    assert isinstance(granted, Permit)
    assert isinstance(again, Permit)
    assert again.permitted_at == granted.permitted_at


def test_the_end_of_a_task_that_came_too_late_in_hand_is_the_worker_s(book: Book) -> None:
    submit(book, not_after=MINUTE)
    lease = book.take()
    book.time.advance(MINUTE + TICK)
    assert book.run(end_late) == 0
    book.report(lease, terminal=True, terminal_status=TaskStatus.FAILED, detail="too late", sequence=1)
    assert book.status() is TaskStatus.FAILED
    assert book.alerts() == set()


def expired(book: Book, *, permitted: bool) -> Lease:
    """A lease that has run out, on a task that is wanted for six minutes."""
    submit(book, not_after=6 * MINUTE)
    lease = book.take()
    if permitted:
        assert isinstance(book.permit(lease), Permit)
    book.lapse(lease)
    return lease


def test_a_requeued_task_ends_too_while_an_order_is_impossible(book: Book) -> None:
    expired(book, permitted=False)
    book.run(end_late)
    book.run(requeue, "po-1", "again", UPSTREAM)
    book.time.advance(2 * MINUTE)
    assert book.open(book.request(session="session-after-requeue")) is None
    assert book.status() is TaskStatus.FAILED
    (event,) = book.rows("SELECT reason FROM events WHERE kind = 'too_late'")
    assert event["reason"] == "too late, not taken again; nothing was ordered"


def test_a_requeued_task_that_may_be_ordered_is_looked_at_and_gets_no_permit(book: Book) -> None:
    expired(book, permitted=True)
    book.run(requeue, "po-1", "again", UPSTREAM)
    book.time.advance(2 * MINUTE)
    assert book.run(end_late) == 0
    lease = book.open(book.request(session="session-after-requeue"))
    assert lease is not None, "a worker looks at the site"
    book.renew(lease)
    assert reason(book.permit(lease)) is Reason.TOO_LATE


def test_a_requeued_task_is_kept_back_as_long_as_it_was(book: Book) -> None:
    """Only where the clock of UTC was set between."""
    submit(book, not_before=HOUR)
    book.connection.execute("UPDATE tasks SET status = 'stale', held_until = NULL, lease_count = 1")
    book.run(requeue, "po-1", "again", UPSTREAM)
    assert book.task().held_until == book.task().not_before
    assert book.open() is None


def test_more_than_a_batch_that_come_too_late_at_once_are_not_handed_out(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "BATCH", 2)
    for number in range(5):
        submit(book, f"po-{number}", not_after=MINUTE)
    book.submit("good")
    book.time.advance(MINUTE + TICK)
    for _ in range(3):
        lease = book.open()
    assert lease is not None
    assert lease.task_id == "good"
    assert {book.status(f"po-{number}") for number in range(5)} == {TaskStatus.FAILED}


def test_the_wall_clock_set_back_hands_nothing_out_twice_nor_early(book: Book) -> None:
    submit(book, not_before=HOUR)
    book.time.step_wall(-2 * HOUR)
    book.time.advance(HOUR)
    assert book.open() is None, "by the gateway's UTC the time has not come"
    book.time.advance(2 * HOUR)
    assert book.open() is not None


def test_times_never_change(book: Book) -> None:
    first: dict[str, Any] = {"not_before": at(book, HOUR), "not_after": at(book, 2 * HOUR)}
    book.submit(**first)
    assert book.submit(**first).differs == ()
    assert book.submit().differs == ("not_before", "not_after")
    assert book.submit(**(first | {"not_after": at(book, 3 * HOUR)})).differs == ("not_after",)
    assert book.task().not_after == first["not_after"]
