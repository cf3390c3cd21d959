"""Alerts: raised once, cleared once, never flapping; and which of them a person answers."""

import random
from datetime import timedelta

import pytest

from gateway.domain.models import AlertKind
from gateway.domain.operations import Alert
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.alerts import WorkerWatch, watch_queue
from gateway.store import alerts
from tests.gateway.operations.person import WHY, Person, bring
from tests.gateway.support.book import Book, reason
from tests.gateway.support.manual_time import TICK

OFFLINE = AlertKind.WORKER_OFFLINE
UNCLAIMED = AlertKind.TASK_UNCLAIMED


class Watch:
    """The alert sweep, as the process runs it."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self.workers = WorkerWatch()

    def look(self) -> int:
        return self.book.run(watch_queue, self.book.policy) + self.book.run(self.workers.look, self.book.policy)

    def told(self) -> list[str]:
        """Every word to the outside so far, the oldest first."""
        sql = "SELECT edge, kind, subject FROM alert_deliveries JOIN alerts USING (alert_id) ORDER BY delivery_id"
        return [f"{row['edge']} {row['kind']} {row['subject']}" for row in self.book.rows(sql)]


@pytest.fixture
def watch(book: Book) -> Watch:
    return Watch(book)


def beat(book: Book, worker: str = "w1") -> None:
    book.open(book.request(worker))


@pytest.mark.extended
def test_a_virtual_day_of_a_worker_with_jitter_raises_nothing(book: Book, watch: Watch) -> None:
    dice = random.Random(7)  # noqa: S311 - the same day each time
    end = book.time.wall + timedelta(days=1)
    while book.time.wall < end:
        beat(book)
        pause = dice.uniform(15, 45) + (dice.random() < 0.01) * 120
        while pause > 0:
            step = min(10.0, pause)
            book.time.advance(step)
            pause -= step
            watch.look()
    assert watch.told() == []


def test_a_worker_that_is_gone_is_told_once_and_cleared_once(book: Book, watch: Watch) -> None:
    watch.look()
    beat(book)
    book.time.advance(book.policy.worker_offline_after)
    assert watch.look() == 0, "not yet: the limit itself is not beyond it"
    book.time.advance(TICK)
    for _ in range(100):
        watch.look()
        book.time.advance(5)
    assert watch.told() == ["raised worker_offline w1"]
    for _ in range(100):
        beat(book)
        watch.look()
        book.time.advance(5)
    assert watch.told() == ["raised worker_offline w1", "cleared worker_offline w1"]


def test_a_worker_that_calls_now_and_then_does_not_make_the_alert_flap(book: Book, watch: Watch) -> None:
    beat(book)
    for _ in range(24):
        for _ in range(62):
            book.time.advance(5)
            watch.look()
        beat(book)
    assert watch.told() == ["raised worker_offline w1"]


def test_a_restart_gives_workers_time_to_call(book: Book, watch: Watch) -> None:
    beat(book)
    watch.look()
    book.time.advance(3600)
    book.restart()
    restarted = Watch(book)
    restarted.look()
    beat(book)
    book.time.advance(book.policy.worker_offline_after)
    restarted.look()
    assert restarted.told() == []


def test_a_forgotten_worker_alerts_no_more(book: Book, watch: Watch, person: Person) -> None:
    watch.look()
    beat(book)
    book.time.advance(301)
    watch.look()
    person.forget()
    watch.look()
    assert watch.told() == ["raised worker_offline w1", "cleared worker_offline w1"]


@pytest.mark.sqlite
def test_a_task_that_waits_is_told_once_and_cleared_once(book: Book, watch: Watch, person: Person) -> None:
    book.submit()
    book.time.step_wall(timedelta(hours=5))
    watch.look()
    assert watch.told() == [], "the wall clock has no say"
    book.time.advance(book.policy.task_unclaimed_after)
    watch.look()
    assert watch.told() == []
    book.time.advance(TICK)
    watch.look()
    watch.look()
    (alert,) = person.alerts(UNCLAIMED)
    assert "has waited for more than 600 s" in alert.message
    book.take()
    watch.look()
    watch.look()
    assert watch.told() == ["raised task_unclaimed po-1", "cleared task_unclaimed po-1"]


def test_a_requeued_task_waits_anew(book: Book, watch: Watch, person: Person) -> None:
    book.submit()
    book.time.advance(500)
    book.lapse(book.take())
    person.requeue()
    book.time.advance(500)
    watch.look()
    assert person.alerts(UNCLAIMED) == ()
    book.time.advance(101)
    watch.look()
    assert len(person.alerts(UNCLAIMED)) == 1


def test_a_long_queue_alerts_for_the_next_task_of_each_target(book: Book, watch: Watch, person: Person) -> None:
    for number in range(3):
        for account in ("", "a"):
            book.submit(f"po-{account}{number}", account=account)
    book.time.advance(601)
    watch.look()
    watch.look()
    assert sorted(alert.subject for alert in person.alerts()) == ["po-0", "po-a0"]


def test_of_many_targets_those_alert_that_have_waited_longest(book: Book, watch: Watch, person: Person) -> None:
    for number in range(150):
        book.submit(f"po-{number:03d}", account=f"a{number}")
    book.time.advance(601)
    watch.look()
    assert sorted(alert.subject for alert in person.alerts()) == [f"po-{number:03d}" for number in range(100)]


def test_conditions_cannot_be_answered_by_hand(book: Book, person: Person) -> None:
    bring(book, TaskStatus.STALE)
    (alert,) = person.alerts()
    assert reason(person.clear(alert.alert_id)) is Reason.STATUS_CONFLICT
    assert person.alerts() == (alert,)
    assert reason(person.clear(99)) is Reason.INVALID_FIELD


def test_what_has_happened_is_answered_once_with_a_reason(book: Book, person: Person) -> None:
    lease = book.take()
    book.report(lease, OrderState.PAID, sequence=1, terminal=True)
    book.report(lease, OrderState.CANCELLED, sequence=2)
    (alert,) = person.alerts()
    assert alert.kind is AlertKind.CONTRADICTING_REPORT
    assert [decision.task.task.task_id for decision in person.decisions()] == ["po-1"]
    book.time.advance(1)
    cleared = person.clear(alert.alert_id)
    assert isinstance(cleared, Alert)
    assert cleared.cleared_at == book.clock.now().utc
    book.time.advance(1)
    assert person.clear(alert.alert_id) == cleared
    (event,) = person.events("po-1", "clear_alert").items
    assert (event.actor, event.reason) == ("operator", WHY)
    assert person.decisions() == ()
    assert person.alerts(cleared_too=True) == (cleared,)


def test_alerts_by_kind_newest_first(book: Book, person: Person) -> None:
    bring(book, TaskStatus.STALE)
    book.run(lambda tx, now: alerts.raise_once(tx, now, AlertKind.WORKER_OFFLINE, "w9", "m"))
    assert [alert.kind for alert in person.alerts()] == [OFFLINE, AlertKind.TASK_STALE]
    assert [alert.kind for alert in person.alerts(OFFLINE)] == [OFFLINE]
