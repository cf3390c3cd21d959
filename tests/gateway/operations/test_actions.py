"""Each action of a person from each status: the transition table decides, and the history tells who and why."""

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.leases import Lease, OtherOrders
from gateway.domain.models import TaskDetail
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import OrderState, TaskStatus
from gateway.domain.transitions import TRANSITIONS, Event, allowed, allows
from tests.gateway.operations.person import OPERATOR, WHY, Person, bring
from tests.gateway.support.book import Book, reason, refused
from tests.gateway.support.manual_time import TICK

ACTIONS: dict[Event, Callable[[Person], Any]] = {
    Event.CANCEL: Person.cancel,
    Event.REQUEUE: Person.requeue,
    Event.WITHDRAW: Person.withdraw,
    Event.EXPIRE_NOW: Person.expire_now,
    Event.RESOLVE: lambda person: person.resolve(although=True),
}
LEADS_TO = {
    Event.CANCEL: TaskStatus.FAILED,
    Event.REQUEUE: TaskStatus.QUEUED,
    Event.WITHDRAW: TaskStatus.STALE,
    Event.EXPIRE_NOW: TaskStatus.STALE,
    Event.RESOLVE: TaskStatus.SUCCEEDED,
}
STANDS = [(status, True) for status in TaskStatus] + [(TaskStatus.QUEUED, False), (TaskStatus.FAILED, False)]


@pytest.mark.parametrize(
    ("event", "status", "leased"), [(event, *stand) for event, stand in itertools.product(ACTIONS, STANDS)]
)
def test_each_action_from_each_status(
    book: Book, person: Person, event: Event, status: TaskStatus, leased: bool
) -> None:
    bring(book, status, leased=leased)
    before = book.task()
    assert (before.status, before.lease_count > 0) == (status, leased)
    if event is Event.CANCEL and (status, leased) == (TaskStatus.FAILED, False):
        return  # a repeat of the cancel answers what the first one answered

    outcome = ACTIONS[event](person)

    if allows(event, before):
        assert isinstance(outcome, TaskDetail), outcome
        assert outcome.task == book.task()
        assert outcome.task.status is LEADS_TO[event]
        assert outcome.task.status in TRANSITIONS[event, status]
        assert outcome.task.lease_count == before.lease_count
        last = person.events("po-1").items[0]
        assert (last.kind, last.actor, last.reason) == (event, "operator", WHY)
        assert (last.before, last.after) == (status, outcome.task.status)
    else:
        refusal = refused(outcome)
        assert refusal.reason is Reason.STATUS_CONFLICT
        assert refusal.current_status is status
        assert refusal.allowed == allowed(before)
        assert book.task() == before, "a refusal changes nothing but the history"
        last = person.events("po-1").items[0]
        assert (last.kind, last.actor) == (f"{event}_refused", "operator")
        assert last.reason == refusal.message


@pytest.mark.parametrize("action", ACTIONS.values())
def test_a_task_that_is_not_there(person: Person, action: Callable[[Person], Any]) -> None:
    assert reason(action(person)) is Reason.TASK_NOT_FOUND


def test_a_repeat_after_a_lost_answer_shows_where_the_task_stands(book: Book, person: Person) -> None:
    bring(book, TaskStatus.STALE)
    person.requeue()
    again = refused(person.requeue())
    assert (again.reason, again.current_status) == (Reason.STATUS_CONFLICT, TaskStatus.QUEUED)


def test_a_stale_task_alerts_until_it_is_dealt_with(book: Book, person: Person) -> None:
    stale = ("task_stale", "po-1")
    bring(book, TaskStatus.STALE)
    assert stale in book.alerts()
    person.requeue()
    assert stale not in book.alerts()
    person.withdraw()
    assert stale in book.alerts()
    person.requeue()
    lease = book.open(book.request(session="session-after-requeue"))
    assert lease is not None
    assert lease.lease_count == 2, "the next lease is a recovered one"
    person.expire_now()
    assert stale in book.alerts()
    person.fail()
    assert book.alerts() == set()


def test_a_lapsed_lease_counts_as_stale_before_any_sweep(book: Book, person: Person) -> None:
    book.lapse(book.take())
    assert refused(person.expire_now()).current_status is TaskStatus.STALE
    assert isinstance(person.requeue(), TaskDetail)


def test_expire_now_ends_the_lease_for_its_worker(book: Book, person: Person) -> None:
    lease = book.take()
    person.expire_now()
    assert reason(book.renew(lease)) is Reason.LEASE_INVALID
    assert reason(book.permit(lease)) is Reason.LEASE_INVALID
    assert "was ended by operator" in person.alerts()[0].message


def test_failed_at_once_where_an_order_is_impossible(book: Book, person: Person) -> None:
    bring(book, TaskStatus.STALE)
    assert isinstance(person.fail(), TaskDetail)


def test_failed_only_after_the_settle_time_where_a_click_is_possible(book: Book, person: Person) -> None:
    lease = book.take()
    book.permit(lease)
    book.lapse(lease)
    refusal = refused(person.fail())
    assert (refusal.reason, refusal.retry_after) == (Reason.PERMIT_NOT_SETTLED, book.policy.permit_settle)
    assert refusal.current_status is TaskStatus.STALE
    book.time.advance(book.policy.permit_settle - TICK)
    assert refused(person.fail()).retry_after == TICK
    book.time.advance(TICK)
    assert isinstance(person.fail(), TaskDetail)


def test_a_lease_over_rest_settles_from_its_end(book: Book, person: Person) -> None:
    lease = book.take(request=book.rest_request())
    book.time.advance(60)
    person.expire_now()
    assert refused(person.fail()).retry_after == book.policy.permit_settle
    assert lease.lease_count == 1


def test_succeeded_needs_no_settle_time(book: Book, person: Person) -> None:
    lease = book.take()
    book.permit(lease)
    person.expire_now()
    assert person.resolve().task.status is TaskStatus.SUCCEEDED


def test_a_late_report_of_an_order_makes_failed_wait_as_well(book: Book, person: Person) -> None:
    lease = book.take()
    book.lapse(lease)
    book.report(lease, OrderState.ORDERED, sequence=1)
    assert reason(person.fail()) is Reason.PERMIT_NOT_SETTLED
    book.time.advance(book.policy.permit_settle)
    assert isinstance(person.fail(), TaskDetail)


def test_a_workers_failed_can_be_corrected_to_succeeded_and_to_nothing_else(book: Book, person: Person) -> None:
    lease = book.take()
    book.report(lease, OrderState.IN_CART, sequence=1, terminal=True, terminal_status=TaskStatus.FAILED)
    refusal = refused(person.fail())
    assert (refusal.reason, refusal.current_status) == (Reason.STATUS_CONFLICT, TaskStatus.FAILED)
    assert person.resolve(number="250-1").task.status is TaskStatus.SUCCEEDED


def test_what_the_person_saw_counts_as_known(book: Book, person: Person) -> None:
    bring(book, TaskStatus.STALE)
    done = person.resolve(state=OrderState.PAID, number="250-1")
    assert done.task.latest_state is OrderState.PAID
    (row,) = done.reports
    assert (row.state, row.site_order_id) == (OrderState.PAID, "250-1")
    assert row.detail == f"stated by a person: {WHY}"
    assert person.events("po-1", "resolve").items[0].details_json == (
        '{"state":"paid","site_order_id":"250-1","placement":"impossible"}'
    )

    # The next task's verification leaves the number out, and its double alerts.
    other = book.take("po-2", request=book.request(session="session-of-po-2-first"))
    book.lapse(other)
    again = book.reclaim("po-2", book.request(session="session-of-po-2-again"))
    assert isinstance(again, Lease)
    assert again.others == OtherOrders(("250-1",), incomplete=False)
    person.expire_now("po-2")
    person.resolve(task_id="po-2", number="250-1")
    assert ("site_order_id_conflict", "rakuten/250-1") in book.alerts()


def test_a_statement_erases_nothing_that_the_worker_told(book: Book, person: Person) -> None:
    lease = book.take()
    book.report(lease, OrderState.ORDERED, sequence=1, payable_yen=980, evidence_ref="po-1/04-order-submit", detail="x")
    book.lapse(lease)
    done = person.resolve(number="250-1")
    (row,) = done.reports
    assert (row.state, row.payable_yen, row.site_order_id, row.detail) == (OrderState.ORDERED, 980, "250-1", "x")


def test_a_number_that_differs_from_what_was_told_is_refused_and_changes_nothing(book: Book, person: Person) -> None:
    lease = book.take()
    book.report(lease, OrderState.ORDERED, sequence=1, site_order_id="250-1")
    book.lapse(lease)
    told = book.rows("SELECT * FROM reports")
    refusal = refused(person.resolve(number="250-9"))
    assert refusal.reason is Reason.INVALID_FIELD
    assert [violation.field for violation in refusal.violations] == ["site_order_id"]
    assert "(250-1); leave the order number away or give the known one" in refusal.message
    assert book.rows("SELECT * FROM reports") == told
    assert book.rows("SELECT site_order_id FROM order_numbers") == [{"site_order_id": "250-1"}]
    assert person.events("po-1").items[0].kind == "resolve_refused"
    assert person.resolve(number="250-1").task.status is TaskStatus.SUCCEEDED
    assert book.rows("SELECT * FROM reports") == told


def test_with_two_numbers_told_the_report_keeps_its_own(book: Book, person: Person) -> None:
    lease = book.take()
    book.report(lease, OrderState.ORDERED, sequence=1, site_order_id="250-1")
    book.lapse(lease)
    book.report(lease, OrderState.ORDERED, sequence=2, site_order_id="250-2")
    assert "(250-1, 250-2)" in refused(person.resolve(number="250-9")).message
    (row,) = person.resolve(number="250-2").reports
    assert row.site_order_id == "250-1"
    assert '"site_order_id":"250-2"' in person.events("po-1", "resolve").items[0].details_json


def test_a_report_that_contradicts_the_person_is_kept_and_alerts(book: Book, person: Person) -> None:
    lease = book.take()
    holder = book.holder(lease)
    book.lapse(lease)
    person.fail()
    assert book.alerts() == set()
    late = book.report(lease, OrderState.PAID, sequence=1, terminal=True, holder=holder)
    assert reason(late) is Reason.STATUS_CONFLICT
    assert refused(late).recorded_late
    assert {kind for kind, _ in book.alerts()} == {"contradicting_report", "late_report"}
    assert person.decision().task.task.status is TaskStatus.FAILED
    person.resolve()
    assert book.alerts() == set()


def test_a_pause_stands_until_it_is_lifted_and_is_told_once(book: Book, person: Person) -> None:
    book.submit()
    first = person.pause()
    assert [(pause.site, pause.paused_by, pause.reason) for pause in first] == [(None, "operator", WHY)]
    book.time.advance(5)
    assert person.pause() == first, "a repeat leaves the pause as it is"
    person.pause("rakuten")
    assert book.open() is None
    assert [pause.site for pause in person.resume()] == ["rakuten"]
    assert book.open() is None
    assert person.resume("rakuten") == ()
    assert person.resume("rakuten") == ()
    assert book.open() is not None
    told = [(event.kind, event.subject, event.details_json) for event in person.events(None, "pause", "resume").items]
    assert told == [
        ("resume", "", '{"site":"rakuten"}'),
        ("resume", "", '{"site":""}'),
        ("pause", "", '{"site":"rakuten"}'),
        ("pause", "", '{"site":""}'),
    ]


def test_no_permit_while_paused(book: Book, person: Person) -> None:
    lease = book.take()
    person.pause("rakuten")
    assert reason(book.permit(lease)) is Reason.DISPATCH_PAUSED
    person.resume("rakuten")
    assert not isinstance(book.permit(lease), Refusal)


def test_forgetting_a_worker(book: Book, person: Person) -> None:
    assert reason(person.forget()) is Reason.WORKER_NOT_FOUND
    lease = book.take()
    refusal = refused(person.forget())
    assert (refusal.reason, refusal.current_status) == (Reason.STATUS_CONFLICT, TaskStatus.LEASED)
    assert refusal.allowed == ("expire_now",)
    book.lapse(lease)
    assert person.forget() is None, "a lapsed lease holds nobody back"
    assert book.rows("SELECT worker_id FROM workers") == []
    (event,) = person.events(None, "forget_worker").items
    assert (event.actor, event.worker_id, event.reason) == (OPERATOR.identity, "w1", WHY)
    book.open(book.request(session="session-after-forget"))
    assert book.rows("SELECT worker_id FROM workers") == [{"worker_id": "w1"}], "who calls is known again"


def test_settle_times_count_through_a_wall_clock_step(book: Book, person: Person) -> None:
    lease = book.take()
    book.permit(lease)
    book.lapse(lease)
    book.time.step_wall(timedelta(hours=5))
    assert reason(person.fail()) is Reason.PERMIT_NOT_SETTLED
