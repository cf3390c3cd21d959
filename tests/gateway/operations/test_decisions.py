"""What waits for a person, and the one sentence that says whether an order is impossible, possible or certain."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.leases import Permit, Verdict
from gateway.domain.states import OrderState, Placement, TaskStatus
from gateway.operations.decisions import list_decisions
from tests.gateway.operations.person import Person, bring
from tests.gateway.support.book import LOOK, Book, refused


def test_impossible_without_a_permit(book: Book, person: Person) -> None:
    bring(book, TaskStatus.STALE)
    found = person.decision()
    assert found.task.task.placement is Placement.IMPOSSIBLE
    assert found.summary == (
        "An order is impossible: no submit permit was ever granted, and without one no worker clicks "
        "(leases: 1, the last one held by w1)."
    )
    assert found.allowed == ("reclaim", "requeue", "resolve")
    assert (found.last_worker_id, found.settles_in, found.last_verification) == ("w1", None, None)
    assert [alert.kind for alert in found.alerts] == ["task_stale"]


def test_possible_after_a_permit(book: Book, person: Person) -> None:
    lease = book.take()
    permit = book.permit(lease)
    assert isinstance(permit, Permit)
    book.lapse(lease)
    person.expire_now()
    found = person.decision()
    assert found.task.task.placement is Placement.POSSIBLE
    assert found.summary == (
        f"An order is possible: a submit permit was granted to w1 at {permit.permitted_at} (lease 1), "
        "and nothing is known of what came of it."
    )
    assert found.settles_in == book.policy.permit_settle


def test_possible_over_rest(book: Book, person: Person) -> None:
    book.take(request=book.rest_request())
    person.expire_now()
    assert person.decision().summary.startswith(
        "An order is possible: lease 1 was taken by w1 over REST, where no permit guards the click"
    )


def test_certain_by_a_report(book: Book, person: Person) -> None:
    lease = book.take()
    book.permit(lease)
    book.report(lease, OrderState.ORDERED, sequence=1, site_order_id="250-1")
    at = book.task().updated_at
    person.expire_now()
    assert person.decision().summary == (
        f"An order is certain: it was reported as ordered with the order number 250-1 at {at}."
    )


def test_certain_by_a_late_report(book: Book, person: Person) -> None:
    lease = book.take()
    book.permit(lease)
    book.lapse(lease)
    refusal = refused(book.report(lease, OrderState.PAID, sequence=1, site_order_id="250-1", payable_yen=980))
    found = person.decision()
    (late,) = found.late_reports
    assert (late.worker_id, late.report.state, late.report.payable_yen) == ("w1", OrderState.PAID, 980)
    assert refusal.message.startswith(late.refusal)
    assert found.summary == (
        f"An order is certain: a late report of w1 at {late.report.reported_at}, refused but kept, "
        "says paid with the order number 250-1."
    )
    assert {alert.kind for alert in found.alerts} == {"task_stale", "late_report"}


def test_the_last_verification_is_shown_whether_or_not_it_was_enough(book: Book, person: Person) -> None:
    lease = book.retake(book.take())
    book.time.advance(30)
    look = replace(LOOK, verdict=Verdict.UNKNOWN, window_fully_covered=False, begun_at=timedelta(seconds=20))
    refused(book.permit(lease, look=look))
    person.expire_now()
    assert person.decision().last_verification == look


def test_the_longest_waiting_comes_first_and_paging_neither_skips_nor_repeats(book: Book, person: Person) -> None:
    for number in range(1, 8):
        book.take(f"po-{number}", request=book.request(session=f"session-number-{number}"))
        person.expire_now(f"po-{number}")
    person.requeue("po-1")
    person.withdraw("po-1")
    names = [decision.task.task.task_id for decision in person.decisions()]
    assert names == ["po-2", "po-3", "po-4", "po-5", "po-6", "po-7", "po-1"]
    paged, after = [], None
    while True:
        page = book.run(list_decisions, book.policy, after, 3)
        paged += [decision.task.task.task_id for decision in page.items]
        after = page.next_after
        if after is None:
            break
    assert paged == names


def test_a_page_of_large_ones_is_short_and_paging_meets_all(book: Book, person: Person) -> None:
    intent = '{"x": "' + "x" * 250_000 + '"}'
    for number in range(20):
        book.submit(f"po-{number}", intent_json=intent)
        book.take(f"po-{number}", request=book.request(session=f"session-number-{number:02}"))
        person.expire_now(f"po-{number}")
    met, after = [], None
    while True:
        page = book.run(list_decisions, book.policy, after, 200)
        assert 0 < len(page.items) * len(intent) < 4 * 2**20
        met += [decision.task.task.task_id for decision in page.items]
        after = page.next_after
        if after is None:
            break
    assert met == [f"po-{number}" for number in range(20)]


def test_a_number_on_two_tasks_brings_both(book: Book, person: Person) -> None:
    for name in ("po-1", "po-2", "po-3"):
        lease = book.take(name, request=book.request(session=f"session-of-{name}-first"))
        number = "250-3" if name == "po-3" else "250-1"
        book.report(lease, OrderState.PAID, sequence=1, site_order_id=number, terminal=True)
    assert [decision.task.task.task_id for decision in person.decisions()] == ["po-1", "po-2"]
    page = book.run(list_decisions, book.policy, None, 1)
    assert page.next_after is not None
    assert len(book.run(list_decisions, book.policy, page.next_after, 1).items) == 1
    (alert,) = person.decision("po-2").alerts
    assert "po-1" in alert.message
    person.clear(alert.alert_id)
    assert person.decisions() == ()


def test_a_number_that_only_late_reports_tell_brings_both(book: Book, person: Person) -> None:
    for name in ("po-1", "po-2"):
        lease = book.take(name, request=book.request(session=f"session-of-{name}-first"))
        book.lapse(lease)
        book.report(lease, OrderState.ORDERED, sequence=1, site_order_id="250-1")
    assert ("site_order_id_conflict", "rakuten/250-1") in book.alerts()
    for name in ("po-1", "po-2"):
        assert "site_order_id_conflict" in {alert.kind for alert in person.decision(name).alerts}


@pytest.mark.parametrize("status", [TaskStatus.SUCCEEDED, TaskStatus.QUEUED, TaskStatus.RUNNING])
def test_what_needs_nobody_is_not_shown(book: Book, person: Person, status: TaskStatus) -> None:
    bring(book, status)
    assert person.decisions() == ()
