"""RAKUTEN_SECOND_PERSON: a risky decision that one person proposes and another confirms."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.approvals import Consent
from gateway.domain.models import Actor, AlertKind
from gateway.domain.operations import Proposal, ProposalStatus, Resolution, Resumption
from gateway.domain.proposals import in_words, kind_of, read, task_of, written
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.search import TaskSearch
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.actions import resolve
from gateway.operations.bulk import DecisionKind, SeenTask, decide, list_outcomes
from gateway.operations.pause import pause, resume
from gateway.operations.problems import health_with_problems
from gateway.operations.proposals import Confirmed, close_lapsed, confirm, list_proposals, withdraw_proposal
from gateway.operations.restore import mark_restored
from gateway.store import tasks
from tests.gateway.operations.person import WHY, Person
from tests.gateway.support.book import POLICY, Book, reason, refused, terms
from tests.gateway.support.manual_time import TICK, ManualTime

ALICE, BOB, NOBODY = Actor("alice"), Actor("bob"), Actor("operator")
FAILED, SUCCEEDED = TaskStatus.FAILED, TaskStatus.SUCCEEDED
CAREFUL = replace(POLICY, second_person=True)


@pytest.fixture
def book(tmp_path: Path, time: ManualTime) -> Iterator[Book]:
    with Book(tmp_path / "gateway.db", time, CAREFUL) as made:
        yield made


class Pair:
    """Two people at one book."""

    def __init__(self, book: Book) -> None:
        self.book = book

    def resolve(self, outcome: TaskStatus = FAILED, task_id: str = "po-1", by: Actor = ALICE, **told: Any) -> Any:
        stated = {"state": None, "site_order_id": None} | told
        return self.book.run(resolve, self.book.policy, Resolution(task_id, WHY, outcome, **stated), by)

    def approve(self, total: int, task_id: str = "po-1", by: Actor = ALICE) -> Any:
        return Person(self.book).approve(task_id, total, actor=by)

    def resume(self, by: Actor = ALICE) -> Any:
        return self.book.run(resume, self.book.policy, "", WHY, by)

    def confirm(self, proposal_id: int = 1, by: Actor = BOB) -> Any:
        return self.book.run(confirm, self.book.policy, proposal_id, "seen it too", by)

    def withdraw(self, proposal_id: int = 1, by: Actor = BOB) -> Any:
        return self.book.run(withdraw_proposal, proposal_id, "no", by)

    def listed(self, *, closed_too: bool = False) -> tuple[Proposal, ...]:
        return self.book.run(list_proposals, closed_too, None, 200).items

    def alerts(self) -> set[AlertKind]:
        return {alert.kind for alert in Person(self.book).alerts()}

    def status(self, task_id: str = "po-1") -> TaskStatus:
        return self.book.run(lambda tx, _: tasks.get(tx, task_id).status)

    def kinds(self, task_id: str = "po-1") -> list[tuple[str, str]]:
        return [(event.kind, event.actor) for event in reversed(Person(self.book).events(task_id).items)]


@pytest.fixture
def pair(book: Book) -> Pair:
    return Pair(book)


def in_doubt(book: Book, task_id: str = "po-1") -> None:
    """A permit was granted, the lease has run out, and the settle time is over."""
    lease = book.take(task_id)
    book.permit(lease, terms=terms(2_900))
    book.lapse(lease)
    Person(book).requeue(task_id)
    Person(book).withdraw(task_id)
    book.time.advance(book.policy.permit_settle)


def test_a_statement_while_an_order_is_possible_waits_for_somebody_else(pair: Pair) -> None:
    in_doubt(pair.book)
    told = refused(pair.resolve())
    assert (told.reason, told.proposal_id, told.current_status) == (
        Reason.SECOND_PERSON_REQUIRED, 1, TaskStatus.STALE,
    )  # fmt: skip
    assert "to resolve task po-1 to failed needs a second person: somebody else than alice confirms" in told.message
    assert "`order-gateway proposals confirm 1`" in told.message
    assert pair.status() is TaskStatus.STALE
    assert AlertKind.PROPOSAL_WAITING in pair.alerts()
    assert Person(pair.book).decision().proposal == pair.listed()[0]
    assert refused(pair.resolve()) == told, "the same again, after a lost answer, is no second proposal"
    done = pair.confirm()
    assert (done.repeated, done.proposal.status, done.proposal.closed_by) == (False, ProposalStatus.CONFIRMED, "bob")
    assert pair.status() is FAILED
    assert pair.kinds()[-3:] == [("propose", "alice"), ("resolve", "alice"), ("proposal_confirmed", "bob")]
    (resolved,) = Person(pair.book).events("po-1", "resolve").items
    assert '"confirmed_by":"bob"' in resolved.details_json.replace(" ", "")
    assert resolved.reason == WHY
    assert AlertKind.PROPOSAL_WAITING not in pair.alerts()
    assert pair.confirm().repeated, "the same confirmation again changes nothing"
    assert pair.listed() == ()
    assert len(pair.listed(closed_too=True)) == 1


def test_nobody_confirms_their_own_and_a_token_without_a_name_neither_proposes_nor_confirms(pair: Pair) -> None:
    in_doubt(pair.book)
    assert reason(pair.resolve(by=NOBODY)) is Reason.PERMISSION_DENIED
    assert pair.listed() == ()
    pair.resolve()
    own, unnamed = refused(pair.confirm(by=ALICE)), refused(pair.confirm(by=NOBODY))
    assert (own.reason, unnamed.reason) == (Reason.PERMISSION_DENIED, Reason.PERMISSION_DENIED)
    assert "alice proposed to resolve task po-1 to failed; somebody else has to confirm it" in own.message
    assert "has no name" in unnamed.message
    assert pair.status() is TaskStatus.STALE
    assert pair.kinds()[-2:] == [("confirm_refused", "alice"), ("confirm_refused", "operator")]
    assert isinstance(pair.confirm(), Confirmed)


def test_what_is_not_risky_is_decided_by_one(pair: Pair) -> None:
    pair.book.take()
    pair.book.time.advance(301)
    assert pair.resolve().task.status is FAILED, "an order is impossible"
    pair.book.submit("po-2", requires_approval=True, max_total_yen=500_000)
    assert not isinstance(pair.approve(100_000, "po-2"), Refusal)
    pair.book.run(pause, "", WHY, ALICE)
    assert pair.resume() == ()


def test_what_two_have_stated_one_does_not_take_back(pair: Pair) -> None:
    in_doubt(pair.book)
    pair.resolve(TaskStatus.SUCCEEDED, site_order_id="N-1")
    pair.confirm()
    assert pair.status() is TaskStatus.SUCCEEDED
    assert reason(pair.resolve()) is Reason.SECOND_PERSON_REQUIRED
    assert pair.status() is TaskStatus.SUCCEEDED


def test_one_alone_does_not_deny_an_order_that_a_worker_told_of(pair: Pair) -> None:
    lease = pair.book.take()
    pair.book.permit(lease, terms=terms(2_900))
    pair.book.report(lease, state=OrderState.ORDERED, terminal=True, terminal_status=TaskStatus.NEEDS_HUMAN)
    pair.book.time.advance(pair.book.policy.permit_settle * 2)
    assert reason(pair.resolve()) is Reason.SECOND_PERSON_REQUIRED
    assert not isinstance(pair.resolve(TaskStatus.SUCCEEDED, site_order_id="N-1"), Refusal)


def test_without_the_setting_one_is_enough(pair: Pair) -> None:
    pair.book.policy = POLICY
    in_doubt(pair.book)
    assert pair.resolve().task.status is FAILED


def test_what_the_rules_of_a_decision_refuse_is_not_proposed(pair: Pair) -> None:
    lease = pair.book.take()
    pair.book.permit(lease, terms=terms(2_900))
    pair.book.lapse(lease)
    assert reason(pair.resolve()) is Reason.PERMIT_NOT_SETTLED
    assert reason(pair.resolve(task_id="none")) is Reason.TASK_NOT_FOUND
    assert pair.listed() == ()


def test_an_approval_beyond_the_limit(pair: Pair) -> None:
    pair.book.submit(requires_approval=True, max_total_yen=500_000)
    told = refused(pair.approve(100_001))
    assert "to approve task po-1 for at most 100,001 yen needs a second person" in told.message
    (proposal,) = pair.listed()
    assert proposal.decision == Consent("po-1", WHY, 100_001, CAREFUL.approval_valid)
    assert reason(pair.confirm(by=Actor("upstream"))) is Reason.PERMISSION_DENIED, "who filed it is no second person"
    pair.confirm()
    approval = pair.book.rows("SELECT decided_by, max_total_yen FROM approvals")
    assert approval == [{"decided_by": "alice", "max_total_yen": 100_001}]


def test_an_approval_that_another_one_has_overtaken_is_obsolete(pair: Pair) -> None:
    pair.book.submit(requires_approval=True, max_total_yen=500_000)
    pair.approve(200_000)
    pair.approve(50_000, by=BOB)
    assert "has changed since: look again, and propose it anew" in refused(pair.confirm()).message
    assert pair.book.rows("SELECT max_total_yen FROM approvals") == [{"max_total_yen": 50_000}]


def test_the_first_resume_after_a_restore(pair: Pair) -> None:
    pair.book.run(mark_restored, "a-backup.db", Actor("gateway"), pair.book.new_token)
    told = refused(pair.resume())
    assert (told.reason, told.proposal_id) == (Reason.SECOND_PERSON_REQUIRED, 1)
    assert AlertKind.RESUME_PROPOSED in pair.alerts()
    assert pair.book.rows("SELECT site FROM pauses") == [{"site": ""}]
    assert isinstance(pair.confirm(), Confirmed)
    assert pair.book.rows("SELECT site FROM pauses") == []
    assert AlertKind.RESUME_PROPOSED not in pair.alerts()
    pair.book.time.advance(1)
    pair.book.run(pause, "", WHY, ALICE)
    assert pair.resume() == (), "a later pause is anybody's to lift"


def test_a_pause_that_stood_in_the_backup_counts_as_one_of_the_restore(pair: Pair) -> None:
    pair.book.run(pause, "", "upgrade", ALICE)
    pair.book.time.advance(1)
    pair.book.run(mark_restored, "a-backup.db", Actor("gateway"), pair.book.new_token)
    assert reason(pair.resume()) is Reason.SECOND_PERSON_REQUIRED


def test_one_proposal_stands_at_a_time(pair: Pair) -> None:
    in_doubt(pair.book)
    pair.resolve()
    other = refused(pair.resolve(SUCCEEDED, by=BOB))
    assert (other.reason, other.proposal_id) == (Reason.SECOND_PERSON_REQUIRED, 1)
    assert "alice has proposed to resolve task po-1 to failed, which has to be dealt with first" in other.message
    assert reason(pair.resolve(by=BOB)) is Reason.SECOND_PERSON_REQUIRED, (
        "the same decision by another is no confirmation"
    )
    assert pair.status() is TaskStatus.STALE
    assert pair.withdraw().status is ProposalStatus.WITHDRAWN
    assert pair.withdraw().closed_by == "bob"
    assert "was withdrawn by bob" in refused(pair.confirm(by=Actor("carol"))).message
    told = refused(pair.resolve(SUCCEEDED, by=BOB, state=OrderState.ORDERED, site_order_id="R-1"))
    assert told.proposal_id == 2
    assert isinstance(pair.confirm(2, by=ALICE), Confirmed)
    assert pair.status() is SUCCEEDED


def test_what_has_changed_since_is_not_decided(pair: Pair) -> None:
    in_doubt(pair.book)
    pair.resolve()
    Person(pair.book).requeue()
    Person(pair.book).withdraw()
    assert pair.listed() == (), "as soon as it has changed, not when the sweep comes"
    assert reason(pair.confirm()) is Reason.STATUS_CONFLICT
    assert pair.status() is TaskStatus.STALE
    assert pair.listed(closed_too=True)[0].status is ProposalStatus.OBSOLETE
    assert refused(pair.resolve()).proposal_id == 2, "it can be proposed anew"


def test_it_expires_and_not_a_tick_before(pair: Pair) -> None:
    in_doubt(pair.book)
    in_doubt(pair.book, "po-2")
    pair.resolve()
    pair.book.time.advance(CAREFUL.proposal_valid - timedelta(seconds=1))
    pair.resolve(task_id="po-2")
    pair.book.time.advance(timedelta(seconds=1))
    assert pair.book.run(close_lapsed) == 0
    pair.book.time.advance(TICK)
    assert [proposal.proposal_id for proposal in pair.listed()] == [2]
    assert "proposal 1 has expired" in refused(pair.confirm()).message
    pair.book.time.advance(CAREFUL.proposal_valid)
    assert pair.book.run(close_lapsed) == 1
    assert pair.kinds("po-2")[-1] == ("proposal_expired", "gateway")
    pair.resolve(task_id="po-2")
    assert pair.book.run(close_lapsed) == 0
    Person(pair.book).requeue("po-2")
    assert pair.book.run(close_lapsed) == 1
    assert pair.kinds("po-2")[-1] == ("proposal_obsolete", "gateway")
    assert AlertKind.PROPOSAL_WAITING not in pair.alerts()


def test_many_at_once_are_proposed_each_by_itself(pair: Pair) -> None:
    for task_id in ("po-1", "po-2"):
        in_doubt(pair.book, task_id)
    pair.book.take("po-3")
    pair.book.time.advance(301)
    Person(pair.book).requeue("po-3")
    Person(pair.book).withdraw("po-3")
    shown = pair.book.run(
        list_outcomes, pair.book.policy, DecisionKind.RESOLVE_FAILED, TaskSearch(site="rakuten"), None, 200, ALICE
    ).items
    assert {each.task.task_id: each.needs_second_person for each in shown} == {
        "po-1": True, "po-2": True, "po-3": False,
    }  # fmt: skip
    seen = [SeenTask(each.task.task_id, each.task.updated_at) for each in shown]
    done = pair.book.run(decide, pair.book.policy, DecisionKind.RESOLVE_FAILED, seen, WHY, ALICE)
    told = {each.task_id: each.refusal for each in done}
    assert told["po-3"] is None
    numbers = {told[task_id].proposal_id for task_id in ("po-1", "po-2")}  # type: ignore[union-attr]
    assert numbers == {1, 2}
    for number in numbers:
        pair.confirm(number)
    assert {pair.status(task_id) for task_id in ("po-1", "po-2", "po-3")} == {FAILED}


def test_it_shows_in_health_until_it_is_dealt_with(pair: Pair) -> None:
    def problems() -> str:
        health = pair.book.run(health_with_problems, pair.book.policy, has_webhook=False, backup_alert=None)
        return " ".join(problem.message for problem in health.problems if problem.kind == "proposal_waiting")

    in_doubt(pair.book)
    assert not problems()
    pair.resolve()
    assert "proposals that wait for a second person: 1" in problems()
    pair.withdraw()
    assert not problems()


def test_there_is_none_of_that_number(pair: Pair) -> None:
    assert reason(pair.confirm(7)) is Reason.PROPOSAL_NOT_FOUND
    assert reason(pair.withdraw(7)) is Reason.PROPOSAL_NOT_FOUND


@pytest.mark.parametrize(
    "decision",
    [
        Resolution("po-1", WHY, SUCCEEDED, OrderState.ORDERED, "R-1", although_impossible=True),
        Resolution("po-1", WHY, FAILED, None, None),
        Consent("po-1", WHY, 200_000, timedelta(hours=1, microseconds=1)),
        Consent("po-1", WHY, 1, None),
        Resumption(WHY),
    ],
    ids=in_words,
)
def test_what_is_kept_is_what_was_proposed(decision: Any) -> None:
    assert read(kind_of(decision), task_of(decision), decision.reason, written(decision)) == decision
