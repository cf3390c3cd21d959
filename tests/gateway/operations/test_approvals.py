"""What a person may approve and deny, and what a repeat of it comes to (docs/specification.md#approval)."""

from datetime import timedelta

import pytest

from gateway.domain.approvals import Verdict
from gateway.domain.models import Actor
from gateway.domain.refusals import Reason
from gateway.domain.states import TaskStatus
from gateway.operations.approvals import Decided
from gateway.orders.submit import submit
from tests.gateway.operations.person import MIKA, OPERATOR, Person
from tests.gateway.support.book import Book, reason, refused, terms


@pytest.fixture
def person(book: Book) -> Person:
    return Person(book)


def decided(outcome: object) -> Decided:
    assert isinstance(outcome, Decided), outcome
    return outcome


def test_nobody_approves_what_they_filed(book: Book, person: Person) -> None:
    book.run(submit, book.policy, book.wanted(requires_approval=True, max_total_yen=3_000), MIKA)
    refusal = refused(person.approve())
    assert refusal.reason is Reason.PERMISSION_DENIED
    assert "mika filed it; somebody else has to approve it" in refusal.message
    assert book.events()[-1] == "approve_refused"
    assert not decided(person.approve(actor=Actor("ken"))).repeated


@pytest.mark.parametrize("name", ["operator", "operator#2", "api", "anonymous"])
def test_a_token_without_a_name_approves_nothing(book: Book, person: Person, name: str) -> None:
    book.submit(requires_approval=True, max_total_yen=3_000)
    refusal = refused(person.approve(actor=Actor(name)))
    assert refusal.reason is Reason.PERMISSION_DENIED
    assert "has no name" in refusal.message


def test_an_approval_is_for_the_cap_unless_it_says_less(book: Book, person: Person) -> None:
    book.submit(requires_approval=True, max_total_yen=3_000)
    refusal = refused(person.approve(total=3_001))
    assert refusal.reason is Reason.INVALID_FIELD
    assert "at most 3,000 yen" in refusal.message
    approval = decided(person.approve()).task.approval
    assert approval is not None
    assert (approval.verdict, approval.max_total_yen, approval.decided_by) == (Verdict.APPROVED, 3_000, "mika")


def test_without_a_cap_the_approval_needs_a_total(book: Book, person: Person) -> None:
    book.submit(requires_approval=True)
    assert "is required, as the task has no cap" in refused(person.approve()).message
    assert book.rows("SELECT 1 FROM approvals") == []
    assert not decided(person.approve(total=1)).repeated


def test_the_same_approval_again_is_a_repeat_and_another_one_is_not(book: Book, person: Person) -> None:
    book.submit(requires_approval=True, max_total_yen=3_000)
    first = decided(person.approve()).task.approval
    again = decided(person.approve())
    assert again.repeated
    assert again.task.approval == first
    for another in (
        person.approve(total=2_000),
        person.approve(total=2_000, valid_for=timedelta(hours=1)),
        person.approve(total=2_000, why="other words"),
        person.approve(total=2_000, why="other words", actor=Actor("ken")),
    ):
        assert not decided(another).repeated
    assert len(book.rows("SELECT 1 FROM approvals")) == 5
    assert book.events().count("approve") == 5


def test_the_same_words_are_a_new_approval_once_the_former_stands_no_more(book: Book, person: Person) -> None:
    book.submit(requires_approval=True, max_total_yen=3_000)
    person.approve(valid_for=timedelta(seconds=60))
    lease = book.take()
    book.time.advance(61)
    book.report(lease, terminal=True, sequence=1)
    again = decided(person.approve(valid_for=timedelta(seconds=60)))
    assert not again.repeated
    assert again.task.approval is not None
    assert not again.task.approval.has_run_out(book.clock.now().utc)


def test_the_repeat_of_one_that_was_used_is_told_so(book: Book, person: Person) -> None:
    book.submit(requires_approval=True, max_total_yen=3_000)
    person.approve()
    book.permit(book.take(), terms=terms(3_000))
    again = decided(person.approve())
    assert again.repeated
    assert again.task.approval is not None
    assert again.task.approval.used_by_lease == 1


def test_denied_ends_as_failed_and_a_repeat_is_told_so(book: Book, person: Person) -> None:
    book.submit(requires_approval=True)
    done = decided(person.deny())
    assert (done.repeated, done.task.task.status) == (False, TaskStatus.FAILED)
    assert done.task.approval is not None
    assert done.task.approval.verdict is Verdict.DENIED
    assert decided(person.deny()).repeated
    assert reason(person.deny(actor=OPERATOR)) is Reason.STATUS_CONFLICT
    assert reason(person.approve(total=1)) is Reason.STATUS_CONFLICT
    assert book.events() == ["submit", "deny", "deny_refused", "approve_refused"]


def test_what_was_approved_can_be_denied_until_it_is_taken(book: Book, person: Person) -> None:
    book.submit(requires_approval=True)
    person.approve(total=3_000)
    assert decided(person.deny()).task.task.status is TaskStatus.FAILED
    assert book.rows("SELECT 1 FROM approvals WHERE ended_at IS NULL") == []


def test_what_is_in_hand_or_may_be_ordered_is_not_denied(book: Book, person: Person) -> None:
    book.submit(requires_approval=True)
    person.approve(total=3_000)
    lease = book.take()
    assert reason(person.deny()) is Reason.STATUS_CONFLICT
    book.permit(lease, terms=terms(3_000))
    book.lapse(lease)
    person.requeue()
    assert reason(person.deny()) is Reason.STATUS_CONFLICT
    assert book.status() is TaskStatus.QUEUED


def test_what_needs_a_person_can_be_approved_before_it_is_requeued(book: Book, person: Person) -> None:
    book.submit(requires_approval=True)
    person.approve(total=2_000)
    lease = book.take()
    assert reason(book.permit(lease, terms=terms(3_000))) is Reason.TERMS_OVER_CAP
    book.report(lease, terminal=True, sequence=1)
    assert book.status() is TaskStatus.NEEDS_HUMAN
    assert not decided(person.approve(total=3_000)).repeated
    person.requeue()
    assert book.open() is not None


def test_a_waiting_approval_stands_in_the_list_of_decisions(book: Book, person: Person) -> None:
    book.submit(requires_approval=True)
    (decision,) = person.decisions()
    assert {"approve", "deny", "cancel"} <= set(decision.allowed)
    assert "impossible" in decision.summary
    (alert,) = decision.alerts
    assert "filed by upstream, waits for the approval of somebody else (its upstream asks for it)" in alert.message
    assert reason(person.clear(alert.alert_id)) is Reason.STATUS_CONFLICT
    person.approve(total=1)
    assert person.decisions() == ()


def test_unknown_tasks_are_unknown(person: Person) -> None:
    assert reason(person.approve("none")) is Reason.TASK_NOT_FOUND
    assert reason(person.deny("none")) is Reason.TASK_NOT_FOUND
