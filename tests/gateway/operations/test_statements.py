"""What a person states of an order: what it needs, what it may revise, and what of it is never lost."""

import json

import pytest

from gateway.domain.models import TaskDetail
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, Placement, TaskStatus
from tests.gateway.operations.person import Person, bring
from tests.gateway.support.book import POLICY, Book, reason, refused

S, F = TaskStatus.SUCCEEDED, TaskStatus.FAILED
SETTLED = POLICY.permit_ttl + POLICY.permit_settle
"""How long after its permit an order shows for certain, where the lease ended before."""

STUCK = (TaskStatus.STALE, TaskStatus.NEEDS_HUMAN)


# Succeeded while an order is impossible.


@pytest.mark.parametrize("status", [*STUCK, F])
def test_succeeded_of_an_impossible_order_needs_its_number_or_a_person_who_insists(
    book: Book, person: Person, status: TaskStatus
) -> None:
    lease = book.take()
    if status is TaskStatus.STALE:
        book.lapse(lease)
    else:
        book.report(lease, OrderState.IN_CART, sequence=1, terminal=True, terminal_status=status)
    refusal = refused(person.resolve())
    assert (refusal.reason, refusal.violations[0].field) == (Reason.INVALID_FIELD, "site_order_id")
    assert "an order of task po-1 is impossible" in refusal.message
    assert refused(person.resolve(state=OrderState.PAID)).reason is Reason.INVALID_FIELD
    assert book.status() is status
    done = person.resolve(although=True)
    assert (done.task.status, done.task.placement) == (S, Placement.CERTAIN)


def test_its_number_is_enough(book: Book, person: Person) -> None:
    bring(book, TaskStatus.STALE)
    assert person.resolve(number="250-1").task.placement is Placement.CERTAIN


# Revising.


def test_a_statement_is_revised_by_a_person_and_the_history_has_both(book: Book, person: Person) -> None:
    bring(book, TaskStatus.STALE)
    person.resolve(number="250-1", state=OrderState.PAID, why="it is on the list")
    assert person.decisions() == ()
    done = person.resolve(F, why="that was another account's order")
    assert (done.task.status, done.task.latest_state, done.task.placement) == (F, None, Placement.IMPOSSIBLE)
    assert done.reports == ()
    newer, older = person.events("po-1", "resolve").items
    assert (older.after, older.reason) == (S, "it is on the list")
    assert (newer.before, newer.after, newer.reason) == (S, F, "that was another account's order")
    assert json.loads(newer.details_json)["revises"] == {
        "outcome": "succeeded",
        "state": "paid",
        "site_order_ids": ["250-1"],
    }
    back = person.resolve(number="250-2")
    assert (back.task.status, back.task.latest_state) == (S, OrderState.ORDERED)
    assert [report.site_order_id for report in back.reports] == ["250-2"]


def test_what_a_worker_ended_as_succeeded_no_person_can_change(book: Book, person: Person) -> None:
    bring(book, S)
    assert refused(person.fail()).reason is Reason.STATUS_CONFLICT
    assert refused(person.resolve(number="250-1")).reason is Reason.STATUS_CONFLICT
    assert "resolve" not in refused(person.fail()).allowed


def test_a_statement_that_says_nothing_new_is_refused_and_shows_the_status(book: Book, person: Person) -> None:
    bring(book, TaskStatus.STALE)
    person.resolve(number="250-1")
    for again in (
        person.resolve(),
        person.resolve(number="250-1"),
        person.resolve(state=OrderState.ORDERED),
        person.resolve(state=OrderState.ORDERED, number="250-1"),
    ):
        assert (reason(again), refused(again).current_status) == (Reason.STATUS_CONFLICT, S)
    moved_on = person.resolve(state=OrderState.DELIVERED)
    assert [(report.state, report.site_order_id) for report in moved_on.reports] == [(OrderState.DELIVERED, "250-1")]


def test_a_number_that_was_taken_back_is_nobodys_and_its_conflict_is_over(book: Book, person: Person) -> None:
    done = book.take("po-0")
    book.report(done, OrderState.PAID, sequence=1, site_order_id="250-1", terminal=True)
    bring(book, TaskStatus.STALE)
    person.resolve(number="250-1")
    conflict = ("site_order_id_conflict", "rakuten/250-1")
    assert conflict in book.alerts()
    person.resolve(number="250-2")
    assert conflict not in book.alerts()
    assert book.rows("SELECT task_id, site_order_id FROM order_numbers ORDER BY 1") == [
        {"task_id": "po-0", "site_order_id": "250-1"},
        {"task_id": "po-1", "site_order_id": "250-2"},
    ]
    assert [row["site_order_id"] for row in book.rows("SELECT site_order_id FROM reports WHERE task_id = 'po-1'")] == [
        "250-2"
    ]


def test_what_a_worker_told_stays_whatever_a_person_revises(book: Book, person: Person) -> None:
    lease = book.take()
    book.permit(lease)
    book.report(lease, OrderState.ORDERED, sequence=1, site_order_id="250-1", payable_yen=980)
    person.expire_now()
    book.time.advance(SETTLED)
    person.resolve(state=OrderState.PAID)
    done = person.resolve(F, state=OrderState.CANCELLED)
    assert [(report.state, report.site_order_id) for report in done.reports] == [
        (OrderState.ORDERED, "250-1"),
        (OrderState.CANCELLED, None),
    ]
    assert done.task.placement is Placement.CERTAIN
    nothing = person.resolve(S)
    assert refused(person.resolve(S, number="250-9")).reason is Reason.INVALID_FIELD
    assert nothing.task.latest_state is OrderState.CANCELLED


def test_a_number_that_a_worker_tells_too_becomes_the_workers(book: Book, person: Person) -> None:
    lease = book.take()
    book.permit(lease)
    person.expire_now()
    person.resolve(number="250-1")
    book.report(lease, OrderState.ORDERED, sequence=1, site_order_id="250-1")
    assert refused(person.resolve(number="250-2")).reason is Reason.INVALID_FIELD
    book.time.advance(SETTLED)
    assert person.fail().task.placement is Placement.CERTAIN
    assert book.rows("SELECT site_order_id FROM order_numbers") == [{"site_order_id": "250-1"}]


def test_an_order_that_workers_told_of_stays_certain_when_a_person_says_failed(book: Book, person: Person) -> None:
    """Resolving never clears what is known of an order: no permit may follow it."""
    lease = book.take()
    book.permit(lease)
    person.expire_now()
    book.report(lease, OrderState.ORDERED, sequence=1)
    book.time.advance(SETTLED)
    done = person.fail()
    assert done.task.order_known
    assert done.task.placement is Placement.CERTAIN
    assert person.resolve(number="250-1").task.order_known


def test_to_failed_a_revision_waits_for_the_settle_time_as_the_first_word_does(book: Book, person: Person) -> None:
    lease = book.take()
    book.permit(lease)
    person.expire_now()
    person.resolve()
    assert reason(person.fail()) is Reason.PERMIT_NOT_SETTLED
    book.time.advance(SETTLED)
    assert isinstance(person.fail(), TaskDetail)


def test_a_revision_of_an_impossible_order_to_failed_waits_for_nothing(book: Book, person: Person) -> None:
    bring(book, TaskStatus.STALE)
    person.resolve(although=True)
    assert person.fail().task.placement is Placement.IMPOSSIBLE


def test_what_a_person_has_said_failed_is_not_said_to_settle_to_failed(book: Book, person: Person) -> None:
    lease = book.take()
    person.expire_now()
    person.fail()
    book.report(lease, OrderState.ORDERED, sequence=1)
    decision = person.decision()
    assert decision.task.task.placement is Placement.CERTAIN
    assert decision.settles_in is None
    assert refused(person.fail()).reason is Reason.STATUS_CONFLICT


# Failed, told by a worker.


def test_failed_told_of_a_possible_order_alerts_until_a_person_has_looked(book: Book, person: Person) -> None:
    lease = book.take()
    book.permit(lease)
    book.report(lease, OrderState.IN_CART, sequence=1, terminal=True, terminal_status=F)
    (alert,) = person.alerts()
    assert (alert.kind, alert.subject) == ("failed_in_doubt", "po-1")
    assert "w1 ended task po-1 as failed although an order is possible" in alert.message
    decision = person.decision()
    assert decision.allowed == ("resolve", "report")
    assert decision.settles_in == SETTLED
    assert refused(person.clear(alert.alert_id)).reason is Reason.STATUS_CONFLICT
    assert reason(person.fail()) is Reason.PERMIT_NOT_SETTLED
    book.time.advance(SETTLED)
    assert person.decision().settles_in is None
    assert person.fail().task.status is F
    assert (person.alerts(), person.decisions()) == ((), ())
    assert refused(person.fail()).reason is Reason.STATUS_CONFLICT


@pytest.mark.parametrize(
    ("state", "clicked", "over_rest", "alerts"),
    [
        (OrderState.IN_CART, False, False, set()),
        (OrderState.IN_CART, False, True, {("failed_in_doubt", "po-1")}),
        (OrderState.IN_CART, True, False, {("failed_in_doubt", "po-1")}),
        (OrderState.ORDERED, True, False, {("failed_in_doubt", "po-1")}),
        (OrderState.CANCELLED, True, False, set()),
    ],
)
def test_failed_alerts_where_an_order_may_be_there(
    book: Book, state: OrderState, clicked: bool, over_rest: bool, alerts: set[tuple[str, str]]
) -> None:
    lease = book.take(request=book.rest_request() if over_rest else None)
    if clicked:
        book.permit(lease)
    book.report(lease, state, sequence=None if over_rest else 1, terminal=True, terminal_status=F)
    assert book.alerts() == alerts


# Requeue of what needs a person.


def test_what_needs_a_person_is_requeued_while_an_order_is_impossible(book: Book, person: Person) -> None:
    lease = book.take()
    book.report(lease, OrderState.CREATED, sequence=1, error_code=500, terminal=True)
    assert "requeue" in person.decision().allowed
    done = person.requeue()
    assert (done.task.status, done.task.lease_count, done.task.end_status) == (TaskStatus.QUEUED, 1, None)
    assert book.alerts() == set()
    again = book.open(book.request(session="session-after-requeue"))
    assert again is not None
    assert (again.lease_count, again.known_state) == (2, OrderState.CREATED)
    book.renew(again)
    assert reason(book.permit(again)) is Reason.PERMIT_NOT_VERIFIED


@pytest.mark.parametrize("told", [OrderState.IN_CART, OrderState.ORDERED])
def test_what_needs_a_person_is_not_requeued_where_an_order_may_be_there(
    book: Book, person: Person, told: OrderState
) -> None:
    lease = book.take()
    book.permit(lease)
    book.report(lease, told, sequence=1, terminal=True, terminal_status=TaskStatus.NEEDS_HUMAN)
    refusal = refused(person.requeue())
    assert (refusal.reason, refusal.allowed) == (Reason.STATUS_CONFLICT, ("resolve", "report"))
