"""One decision about many tasks (docs/specification.md#decisions): what is shown is what is decided about."""

from dataclasses import dataclass
from typing import Any

import pytest

from gateway.domain.models import TaskDetail
from gateway.domain.refusals import Reason
from gateway.domain.search import TaskSearch
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.bulk import BECOMES, DecidedTask, DecisionKind, DecisionOutcome, SeenTask, decide, list_outcomes
from tests.gateway.operations.person import OPERATOR, WHY, Person
from tests.gateway.support.book import Book

FAILED, SUCCEEDED, QUEUED, STALE = TaskStatus.FAILED, TaskStatus.SUCCEEDED, TaskStatus.QUEUED, TaskStatus.STALE
ALL = TaskSearch(site="rakuten", oldest_first=True)


@dataclass
class Bulk:
    """A person with many tasks before them."""

    book: Book

    def shown(self, kind: DecisionKind, wanted: TaskSearch = ALL) -> tuple[DecisionOutcome, ...]:
        return self.book.run(list_outcomes, self.book.policy, kind, wanted, None, 200, OPERATOR).items

    def decide(self, kind: DecisionKind, outcomes: Any) -> list[DecidedTask]:
        seen = [SeenTask(outcome.task.task_id, outcome.task.updated_at) for outcome in outcomes]
        return self.book.run(decide, self.book.policy, kind, seen, WHY, OPERATOR)


@pytest.fixture
def bulk(book: Book) -> Bulk:
    """Tasks in each situation that a person meets."""
    book.submit("queued")
    for task_id in ("stale", "permitted", "ordered", "unwanted"):
        book.submit(task_id)
    book.cancel("queued")
    book.submit("waiting")
    book.lapse(book.take("stale"))
    permitted = book.take("permitted")
    book.permit(permitted)
    book.lapse(permitted)
    ordered = book.take("ordered")
    book.permit(ordered)
    book.report(ordered, OrderState.ORDERED, sequence=1, site_order_id="250-1")
    book.lapse(ordered)
    book.report(book.take("unwanted"), OrderState.IN_CART, sequence=1, terminal=True, terminal_status=FAILED)
    return Bulk(book)


@pytest.mark.parametrize("kind", DecisionKind)
def test_what_is_shown_is_what_happens(bulk: Bulk, kind: DecisionKind) -> None:
    shown = bulk.shown(kind)
    assert len(shown) == 6
    expected = {
        DecisionKind.REQUEUE: {"stale", "permitted", "ordered"},
        DecisionKind.CANCEL: {"waiting"},
        DecisionKind.RESOLVE_FAILED: {"stale"},
        DecisionKind.RESOLVE_SUCCEEDED: {"permitted", "ordered"},
    }[kind]
    assert {outcome.task.task_id for outcome in shown if outcome.refusal is None} == expected
    before = {outcome.task.task_id: outcome.task.status for outcome in shown}
    decided = bulk.decide(kind, shown)
    for outcome, result in zip(shown, decided, strict=True):
        task_id = outcome.task.task_id
        assert result.task_id == task_id
        if task_id in expected:
            assert (result.status, result.refusal) == (BECOMES[kind], None)
            assert bulk.book.task(task_id).status is BECOMES[kind]
        elif outcome.refusal is None or result.refusal is None:
            assert kind is DecisionKind.CANCEL, "a cancel again answers the same"
            assert task_id == "queued"
        else:
            assert result.refusal.reason is outcome.refusal.reason
            assert bulk.book.task(task_id).status is before[task_id]


def test_looking_changes_nothing(bulk: Bulk) -> None:
    before = bulk.book.rows("SELECT * FROM events")
    for kind in DecisionKind:
        bulk.shown(kind)
    assert bulk.book.rows("SELECT * FROM events") == before


def test_what_has_changed_since_is_left_as_it_is(bulk: Bulk) -> None:
    person = Person(bulk.book)
    shown = [outcome for outcome in bulk.shown(DecisionKind.REQUEUE) if outcome.refusal is None]
    bulk.book.time.advance(1)
    assert isinstance(person.requeue("stale"), TaskDetail)
    assert isinstance(person.withdraw("stale"), TaskDetail)
    results = {result.task_id: result for result in bulk.decide(DecisionKind.REQUEUE, shown)}
    refusal = results["stale"].refusal
    assert refusal is not None
    assert (refusal.reason, refusal.current_status) == (Reason.STATUS_CONFLICT, STALE)
    assert "has changed since it was shown" in refusal.message
    assert bulk.book.task("stale").status is STALE
    assert bulk.book.task("permitted").status is QUEUED
    (event,) = person.events("stale", "requeue_refused").items
    assert event.actor == OPERATOR.identity


def test_the_same_again_is_told_where_each_stands(bulk: Bulk) -> None:
    shown = [outcome for outcome in bulk.shown(DecisionKind.REQUEUE) if outcome.refusal is None]
    bulk.book.time.advance(1)
    bulk.decide(DecisionKind.REQUEUE, shown)
    for result in bulk.decide(DecisionKind.REQUEUE, shown):
        assert result.status is QUEUED
        assert result.refusal is not None


def test_an_unknown_task_is_told_beside_the_others(bulk: Bulk) -> None:
    seen = [SeenTask("nobody", "2026-01-01T00:00:00.000000Z")]
    (result,) = bulk.book.run(decide, bulk.book.policy, DecisionKind.CANCEL, seen, WHY, OPERATOR)
    assert (result.status, result.refusal and result.refusal.reason) == (None, Reason.TASK_NOT_FOUND)


def test_each_has_its_reason_in_the_history(bulk: Bulk) -> None:
    bulk.decide(DecisionKind.REQUEUE, [each for each in bulk.shown(DecisionKind.REQUEUE) if each.refusal is None])
    events = bulk.book.rows("SELECT subject, reason, actor FROM events WHERE kind = 'requeue' ORDER BY subject")
    assert [(row["subject"], row["reason"], row["actor"]) for row in events] == [
        (task_id, WHY, OPERATOR.identity) for task_id in ("ordered", "permitted", "stale")
    ]
