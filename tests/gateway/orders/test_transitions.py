"""Every event against every status: what the table allows happens, anything else leaves the row untouched."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.domain.leases import Holder, Lease, OtherOrders
from gateway.domain.models import Actor, NewReport, TaskDetail
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import ACTIVE, ENDED, OrderState, TaskStatus
from gateway.domain.transitions import TRANSITIONS, Event, allowed, allows
from gateway.orders.expire import expire_due
from gateway.orders.hold import renew
from gateway.orders.lease import take_next
from gateway.orders.report import report as report_order
from tests.gateway.support.book import Book

S = TaskStatus


def in_status(book: Book, status: TaskStatus) -> Lease:
    """Bring po-1 into a status by use cases alone; return its last lease (a stranger's where it had none)."""
    if status is S.QUEUED:
        book.submit()
        return Lease("po-1", "rakuten", "{}", "", 0, None, book.new_token(), "", "", OtherOrders((), incomplete=False))
    lease = book.take(acknowledge=False)
    if status is S.LEASED:
        return lease
    book.renew(lease)
    book.report(lease, OrderState.IN_CART, sequence=1)
    if status is S.STALE:
        book.lapse(lease)
        book.run(expire_due)
    elif status in ENDED:
        book.report(lease, OrderState.IN_CART, sequence=2, terminal=True, terminal_status=status)
    assert book.status() is status
    return lease


def submit_again(book: Book, lease: Lease) -> object:
    return book.submit("po-1", intent_json='{"other": 1}')


def take_next_order(book: Book, lease: Lease) -> object:
    return book.run(take_next, book.policy, book.request("w2"), book.new_token())


def undo(book: Book, lease: Lease) -> object:
    return book.undo(lease)


def holder_of(book: Book, lease: Lease) -> Holder:
    return Holder("po-1", "w1", lease.token, "worker")


def renew_it(book: Book, lease: Lease) -> object:
    return book.run(renew, book.policy, holder_of(book, lease))


def report(book: Book, lease: Lease) -> object:
    return book.report(lease, OrderState.CREATED, sequence=1, holder=holder_of(book, lease))


def finish(book: Book, lease: Lease) -> object:
    return book.report(lease, OrderState.PAID, sequence=9, terminal=True, holder=holder_of(book, lease))


def expire(book: Book, lease: Lease) -> object:
    return book.run(expire_due)


def reclaim(book: Book, lease: Lease) -> object:
    return book.reclaim("po-1", book.request("w2", session="session-of-another"))


def cancel(book: Book, lease: Lease) -> object:
    return book.cancel()


Attempt = Callable[[Book, Lease], object]

# What is tried: the use case, and the events of the table that it can be in the statuses that it may find.
ATTEMPTS: dict[str, tuple[Attempt, tuple[Event, ...]]] = {
    "submit": (submit_again, (Event.SUBMIT,)),
    "lease": (take_next_order, (Event.LEASE,)),
    "undo": (undo, (Event.UNDO,)),
    "renew": (renew_it, (Event.ACKNOWLEDGE, Event.RENEW)),
    "report": (report, (Event.REPORT, Event.REPORT_AFTER_END)),
    "finish": (finish, (Event.FINISH,)),
    "expire": (expire, (Event.EXPIRE,)),
    "reclaim": (reclaim, (Event.RECLAIM,)),
    "cancel": (cancel, (Event.CANCEL,)),
}


def row(book: Book) -> dict[str, Any]:
    (found,) = book.rows("SELECT * FROM tasks WHERE task_id = 'po-1'")
    return found


@pytest.mark.parametrize("status", list(TaskStatus))
@pytest.mark.parametrize("name", list(ATTEMPTS))
def test_what_the_table_allows_happens_and_nothing_else_changes_the_row(
    book: Book, name: str, status: TaskStatus
) -> None:
    attempt, events = ATTEMPTS[name]
    lease = in_status(book, status)
    if name == "expire" and status in ACTIVE:
        book.lapse(lease)
    before, stood, happened = row(book), book.task(), book.events()
    outcome = attempt(book, lease)
    after = row(book)
    possible = [event for event in events if allows(event, stood)]
    if possible:
        targets = set().union(*(TRANSITIONS[event, status] for event in possible))
        assert after["status"] in targets, outcome
        assert not isinstance(outcome, Refusal)
        assert book.events()[-1] in possible
    else:
        # A refused report changes nothing, but what it says of an order is kept: it may be the only word of it.
        assert after == before | {"order_known": int(name == "finish" or before["order_known"])}, outcome
        assert [kind for kind in book.events()[len(happened) :] if not kind.endswith("_refused")] == []


@pytest.mark.parametrize("status", [status for status in TaskStatus if status is not S.STALE])
def test_a_refused_reclaim_names_the_status_and_what_is_possible(book: Book, status: TaskStatus) -> None:
    in_status(book, status)
    refusal = book.reclaim("po-1", book.request("w2", session="session-of-another"))
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.current_status) == (Reason.STATUS_CONFLICT, status)
    assert refusal.allowed == allowed(book.task())
    assert "reclaim" not in refusal.allowed
    assert book.events()[-1] == "reclaim_refused"


@pytest.mark.parametrize("status", [status for status in TaskStatus if status is not S.QUEUED])
def test_a_refused_cancel_names_the_status_and_what_is_possible(book: Book, status: TaskStatus) -> None:
    in_status(book, status)
    refusal = book.cancel()
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.current_status) == (Reason.STATUS_CONFLICT, status)
    assert "cancel" not in refusal.allowed


def test_a_task_that_was_leased_once_can_not_be_cancelled_in_the_queue(book: Book) -> None:
    in_status(book, S.STALE)
    book.connection.execute("UPDATE tasks SET status = 'queued'")
    refusal = book.cancel()
    assert isinstance(refusal, Refusal)
    assert refusal.reason is Reason.STATUS_CONFLICT
    assert set(refusal.allowed) == {"lease", "withdraw"}


def test_a_task_whose_order_is_known_from_a_late_report_can_not_be_cancelled(book: Book) -> None:
    """It was never leased, but to end it as failed would hide an order that exists."""
    book.submit()
    told = NewReport(
        OrderState.ORDERED, None, None, "site-1", None, "", None, None, terminal=False, terminal_status=None
    )
    late = book.run(report_order, Holder("po-1", "w9", None, "worker"), told)
    assert isinstance(late, Refusal)
    assert late.recorded_late
    refusal = book.cancel()
    assert isinstance(refusal, Refusal)
    assert (refusal.reason, refusal.current_status) == (Reason.STATUS_CONFLICT, S.QUEUED)
    assert "look on the site" in refusal.message
    assert "cancel" not in refusal.allowed
    assert book.events()[-1] == "cancel_refused"


def test_a_cancelled_task_answers_a_second_cancel_the_same(book: Book) -> None:
    book.submit()
    first, second = book.cancel(), book.cancel()
    assert isinstance(first, TaskDetail)
    assert first == second
    assert first.task.status is S.FAILED
    assert book.events() == ["submit", "cancel"]


def test_nothing_but_time_and_people_moves_a_stale_task(book: Book) -> None:
    lease = in_status(book, S.STALE)
    for name in ("submit", "lease", "undo", "renew", "report", "finish", "expire", "cancel"):
        ATTEMPTS[name][0](book, lease)
        assert book.status() is S.STALE, name


def test_every_change_is_an_event_with_who_before_and_after(book: Book) -> None:
    lease = book.take()
    book.report(lease, OrderState.PAID, terminal=True)
    events = book.rows("SELECT kind, actor, worker_id, status_before, status_after FROM events ORDER BY sequence")
    assert [tuple(event.values()) for event in events] == [
        ("submit", "upstream", None, None, "queued"),
        ("lease", "worker", "w1", "queued", "leased"),
        ("acknowledge", "worker", "w1", "leased", "leased"),
        ("finish", "worker", "w1", "leased", "succeeded"),
    ]


def test_the_expiry_is_told_with_its_holder_and_by_the_gateway(book: Book) -> None:
    book.lapse(book.take())
    book.run(expire_due)
    (event,) = book.rows("SELECT actor, worker_id, status_before, status_after FROM events WHERE kind = 'expire'")
    assert tuple(event.values()) == (Actor("gateway").identity, "w1", "leased", "stale")
