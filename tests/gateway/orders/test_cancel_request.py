"""A cancel of a task in hand (docs/specification.md#cancel): before the permit it wins, after it is too late."""

import pytest

from gateway.domain.leases import Permit
from gateway.domain.models import TaskDetail
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.actions import requeue
from gateway.orders.cancel import cancel
from gateway.orders.expire import expire_due
from tests.gateway.support.book import LOOK, UPSTREAM, Book, reason, terms


def ask(book: Book) -> object:
    return book.run(cancel, "po-1", "found it cheaper", UPSTREAM, while_leased=True)


def requested(book: Book) -> TaskDetail:
    outcome = ask(book)
    assert isinstance(outcome, TaskDetail), outcome
    assert outcome.task.cancel_requested_at is not None
    return outcome


def test_without_being_asked_for_it_is_refused_as_before(book: Book) -> None:
    book.take()
    assert reason(book.cancel()) is Reason.STATUS_CONFLICT
    assert book.task().cancel_requested_at is None


@pytest.mark.parametrize("acknowledged", [False, True])
def test_before_the_permit_it_wins_and_the_permit_is_refused_for_ever(book: Book, acknowledged: bool) -> None:
    lease = book.take(acknowledge=acknowledged)
    assert requested(book).task.status is TaskStatus.LEASED
    if not acknowledged:
        book.renew(lease)
    for _ in range(2):
        assert reason(book.permit(lease, terms=terms(100))) is Reason.CANCEL_REQUESTED
    assert "cancel_request" in book.events()
    book.report(lease, OrderState.IN_CART, sequence=1)
    assert book.status() is TaskStatus.RUNNING
    assert reason(book.permit(lease)) is Reason.CANCEL_REQUESTED
    book.report(lease, OrderState.IN_CART, sequence=2, terminal=True, terminal_status=TaskStatus.FAILED)
    assert book.status() is TaskStatus.FAILED
    assert book.alerts() == set()


def test_after_the_permit_it_is_too_late_and_the_permit_stands(book: Book) -> None:
    lease = book.take()
    granted = book.permit(lease)
    assert reason(ask(book)) is Reason.CANCEL_TOO_LATE
    assert book.task().cancel_requested_at is None
    assert book.events()[-1] == "cancel_refused"
    again = book.permit(lease)
    assert isinstance(granted, Permit)
    assert isinstance(again, Permit)


def test_when_the_permit_has_run_out_it_is_too_late_as_well(book: Book) -> None:
    lease = book.take()
    book.permit(lease)
    book.time.advance(book.policy.permit_ttl)
    assert reason(ask(book)) is Reason.CANCEL_TOO_LATE


def test_when_an_order_is_known_it_is_too_late(book: Book) -> None:
    lease = book.take()
    book.report(lease, OrderState.ORDERED, sequence=1)
    assert reason(ask(book)) is Reason.CANCEL_TOO_LATE


def test_over_rest_nobody_asks_for_a_permit_so_it_is_too_late_from_the_beginning(book: Book) -> None:
    book.submit()
    book.open(book.rest_request())
    assert reason(ask(book)) is Reason.CANCEL_TOO_LATE


def test_a_repeat_answers_the_same_before_and_after_the_end(book: Book) -> None:
    lease = book.take()
    first = requested(book)
    assert requested(book).task.cancel_requested_at == first.task.cancel_requested_at
    book.report(lease, terminal=True, terminal_status=TaskStatus.FAILED, sequence=1)
    assert requested(book).task.status is TaskStatus.FAILED
    assert book.events().count("cancel_request") == 1


def test_a_task_in_the_queue_is_cancelled_at_once(book: Book) -> None:
    book.submit()
    outcome = ask(book)
    assert isinstance(outcome, TaskDetail)
    assert outcome.task.status is TaskStatus.FAILED
    assert outcome.task.cancel_requested_at is None


def test_a_lease_that_has_run_out_is_stale_though_no_sweep_has_run(book: Book) -> None:
    book.lapse(book.take())
    assert reason(ask(book)) is Reason.STATUS_CONFLICT
    assert book.status() is TaskStatus.STALE


def test_a_lease_that_reached_nobody_leaves_its_task_cancelled(book: Book) -> None:
    lease = book.take(acknowledge=False)
    requested(book)
    assert book.undo(lease)
    assert book.status() is TaskStatus.FAILED
    assert book.open() is None


def test_it_stands_when_a_person_has_the_task_taken_again(book: Book) -> None:
    lease = book.take()
    requested(book)
    book.lapse(lease)
    book.run(expire_due)
    book.run(requeue, "po-1", "again", UPSTREAM)
    again = book.open(book.request(session="session-after-requeue"))
    assert again is not None
    book.renew(again)
    assert reason(book.permit(again, look=LOOK)) is Reason.CANCEL_REQUESTED


def test_a_second_lease_is_cancelled_before_its_own_permit(book: Book) -> None:
    first = book.take()
    book.permit(first)
    again = book.retake(first)
    assert requested(book).task.status is TaskStatus.LEASED
    assert reason(book.permit(again, look=LOOK, attests=True)) is Reason.CANCEL_REQUESTED


@pytest.mark.parametrize("ended", [TaskStatus.SUCCEEDED, TaskStatus.NEEDS_HUMAN, TaskStatus.FAILED])
def test_what_has_ended_is_not_cancelled(book: Book, ended: TaskStatus) -> None:
    lease = book.take()
    book.report(lease, OrderState.IN_CART, sequence=1, terminal=True, terminal_status=ended)
    assert reason(ask(book)) is Reason.STATUS_CONFLICT
