"""Health knows of every part that fails without a word, and of what waits for a person."""

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.callbacks.outbox import delivered as callback_delivered
from gateway.callbacks.outbox import reschedule
from gateway.domain.health import Health, Problem, ProblemKind
from gateway.domain.models import Actor, AlertKind, Submission
from gateway.domain.operations import BackupFacts
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.alert_outbox import delivered, failed
from gateway.operations.problems import health_with_problems, record_backup
from gateway.orders.submit import submit
from gateway.store import alerts
from gateway.sweeps.health import HealthSweep
from tests.gateway.operations.person import Person, bring
from tests.gateway.support.book import Book

DAY = timedelta(days=1)
OPERATOR = Actor("operator")


def problems(book: Book, *, has_webhook: bool = True, backup_alert: timedelta | None = DAY) -> dict[ProblemKind, str]:
    found = book.run(health_with_problems, book.policy, has_webhook=has_webhook, backup_alert=backup_alert)
    assert found.degraded is bool(found.problems)
    return {problem.kind: problem.message for problem in found.problems}


def test_a_quiet_gateway_is_well(book: Book) -> None:
    assert problems(book) == {}
    book.submit()
    lease = book.take()
    book.report(lease, OrderState.PAID, sequence=1, terminal=True)
    assert problems(book) == {}


@pytest.mark.parametrize("status", [TaskStatus.STALE, TaskStatus.NEEDS_HUMAN])
def test_a_decision_that_waits_is_a_problem_until_it_is_made(book: Book, person: Person, status: TaskStatus) -> None:
    bring(book, status)
    told = problems(book)
    assert told[ProblemKind.DECISION_WAITING] == f"1 {status.value} to decide; see `order-gateway decisions`"
    assert f"1 task_{status.value}" in told[ProblemKind.ALERT_STANDING]
    person.resolve(number="7")
    assert ProblemKind.DECISION_WAITING not in problems(book)


@pytest.mark.parametrize("kind", AlertKind)
def test_any_standing_alert_is_a_problem(book: Book, kind: AlertKind) -> None:
    book.run(alerts.raise_once, kind, "about-1", "words")
    assert problems(book) == {ProblemKind.ALERT_STANDING: f"1 {kind.value}; see `order-gateway alerts`"}


def test_a_worker_that_is_gone_and_a_task_that_waits_are_problems(book: Book) -> None:
    book.open(book.request())
    book.submit()
    book.time.advance(max(book.policy.worker_offline_after, book.policy.task_unclaimed_after) + DAY / 24)
    told = problems(book)
    assert told[ProblemKind.WORKER_OFFLINE] == "not heard of: w1"
    assert told[ProblemKind.TASK_UNCLAIMED].startswith("task po-1 waits too long")


def test_a_webhook_that_takes_nothing_is_a_problem_from_the_third_try_on(book: Book) -> None:
    book.run(alerts.raise_once, AlertKind.LATE_REPORT, "po-1", "words")
    (number,) = (row["delivery_id"] for row in book.rows("SELECT delivery_id FROM alert_deliveries"))
    for tries in (1, 2, 3):
        assert ProblemKind.ALERT_WEBHOOK_FAILING not in problems(book), tries
        book.run(failed, number)
    assert problems(book)[ProblemKind.ALERT_WEBHOOK_FAILING].startswith("the alert webhook has not taken alert 1 in 3")
    assert ProblemKind.ALERT_WEBHOOK_FAILING not in problems(book, has_webhook=False), "nobody posts any"
    book.run(delivered, number)
    assert ProblemKind.ALERT_WEBHOOK_FAILING not in problems(book)


def test_callbacks_that_are_never_taken_are_a_problem_from_the_third_try_on(book: Book, person: Person) -> None:
    wanted = Submission("po-1", "rakuten", "{}", "http://receiver.example/hook")
    book.run(submit, book.policy, wanted, Actor("upstream"))
    person.cancel()
    (row,) = book.rows("SELECT callback_id FROM callbacks")
    for tries in (1, 2, 3):
        assert problems(book) == {}, tries
        book.run(reschedule, row["callback_id"], "the receiver answered 500", 1.0)
    assert problems(book)[ProblemKind.CALLBACKS_FAILING].startswith("1 callbacks were tried 3 times or more")
    book.run(callback_delivered, row["callback_id"], "taken")
    assert problems(book) == {}


def test_a_backup_too_old_is_a_problem_and_so_is_none(book: Book) -> None:
    book.time.advance(5 * DAY)
    assert problems(book) == {}, "nothing was filed, so nothing can be lost"
    book.submit()
    (first,) = book.rows("SELECT occurred_at FROM events")
    book.time.advance(DAY)
    assert ProblemKind.BACKUP_TOO_OLD not in problems(book)
    book.time.advance(timedelta(microseconds=1))
    assert problems(book)[ProblemKind.BACKUP_TOO_OLD].startswith("no backup is on record; ")
    assert ProblemKind.BACKUP_TOO_OLD not in problems(book, backup_alert=None)

    book.run(record_backup, BackupFacts("b.db", 1, "0" * 64, 1, 1), OPERATOR)
    assert ProblemKind.BACKUP_TOO_OLD not in problems(book)
    book.time.advance(DAY)
    assert ProblemKind.BACKUP_TOO_OLD not in problems(book)
    book.time.advance(timedelta(microseconds=1))
    told = problems(book)[ProblemKind.BACKUP_TOO_OLD]
    assert told.startswith("the newest backup is of ")
    assert first["occurred_at"] not in told


def test_a_worker_that_is_back_ends_its_problem(book: Book) -> None:
    book.open(book.request())
    book.time.advance(book.policy.worker_offline_after + timedelta(seconds=1))
    assert ProblemKind.WORKER_OFFLINE in problems(book)
    book.open(book.request())
    assert problems(book) == {}


class Checked:
    """A health that a test sets."""

    def __init__(self, book: Book) -> None:
        self.health: Health = book.run(health_with_problems, book.policy, has_webhook=False, backup_alert=None)

    def set(self, *kinds: ProblemKind) -> None:
        self.health = replace(self.health, problems=tuple(Problem(kind, f"words of {kind}") for kind in kinds))

    async def look(self) -> Health:
        return self.health


async def test_the_log_tells_once_of_each_problem_that_no_alert_tells_of(
    book: Book, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    checked: Any = Checked(book)
    sweep = HealthSweep(checked.look, 5)
    for kinds in (
        (),
        (ProblemKind.STORE_NOT_WRITABLE, ProblemKind.ALERT_STANDING),
        (ProblemKind.STORE_NOT_WRITABLE, ProblemKind.BACKUP_TOO_OLD),
        (ProblemKind.BACKUP_TOO_OLD, ProblemKind.WORKER_OFFLINE),
        (),
    ):
        checked.set(*kinds)
        await sweep.run_once()
        await sweep.run_once()
    assert [record.getMessage() for record in caplog.records] == [
        "problem=store_not_writable words of store_not_writable",
        "problem=backup_too_old words of backup_too_old",
        "problem=store_not_writable is over",
        "problem=backup_too_old is over",
    ]
