"""Which changes are told, and that they are told in the transaction of the change."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.callbacks.outbox import next_due
from gateway.domain.json_writing import dump_document
from gateway.domain.models import Reported
from gateway.domain.refusals import Refusal
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.restore import mark_restored
from gateway.orders.callbacks import file_callback
from gateway.orders.cancel import cancel
from gateway.store import tasks
from gateway.store.port import Transaction
from gateway.store.reports import with_reports
from gateway.task_document import task_document
from tests.gateway.callbacks.conftest import INTENT, Courier
from tests.gateway.callbacks.receiver import Receiver
from tests.gateway.operations.person import OPERATOR, Person
from tests.gateway.support.book import UPSTREAM, Book
from tests.gateway.support.manual_time import TICK

URL = "http://127.0.0.1:9/orders"


def types(courier: Courier) -> list[str]:
    return [row["type"] for row in courier.filed()]


def leased(courier: Courier) -> None:
    courier.file(URL)
    courier.book.take()


def end(status: TaskStatus) -> Callable[[Courier, Person], None]:
    def act(courier: Courier, _person: Person) -> None:
        courier.file(URL)
        lease = courier.book.take()
        courier.book.report(lease, OrderState.IN_CART, terminal=True, terminal_status=status)

    return act


def expire(courier: Courier, _person: Person) -> None:
    courier.file(URL)
    lease = courier.book.take()
    courier.book.lapse(lease)
    assert isinstance(courier.book.renew(lease), Refusal), "judged at use, though no sweep has run"


def expire_now(courier: Courier, person: Person) -> None:
    leased(courier)
    person.expire_now()


def withdraw(courier: Courier, person: Person) -> None:
    expire_now(courier, person)
    person.requeue()
    person.withdraw()


def resolve(courier: Courier, person: Person) -> None:
    expire_now(courier, person)
    person.resolve(TaskStatus.SUCCEEDED, state=OrderState.PAID, number="R-1")


def correct(courier: Courier, person: Person) -> None:
    expire_now(courier, person)
    person.fail()
    person.resolve(TaskStatus.SUCCEEDED, number="R-1")


def cancelled(courier: Courier, _person: Person) -> None:
    courier.cancelled(URL)


def restore(courier: Courier, _person: Person) -> None:
    courier.file(URL)
    courier.book.run(mark_restored, "backup.db", OPERATOR, courier.book.new_token)


ALL = [
    (end(TaskStatus.SUCCEEDED), ["order.succeeded"]),
    (end(TaskStatus.FAILED), ["order.failed"]),
    (end(TaskStatus.NEEDS_HUMAN), ["order.needs_human"]),
    (expire, ["order.stale"]),
    (expire_now, ["order.stale"]),
    (withdraw, ["order.stale", "order.stale"]),
    (resolve, ["order.stale", "order.succeeded"]),
    (correct, ["order.stale", "order.failed", "order.succeeded"]),
    (cancelled, ["order.failed"]),
    (restore, ["order.stale"]),
]


@pytest.mark.parametrize(("act", "told"), ALL)
def test_every_change_into_a_told_status_is_filed_once(
    courier: Courier, person: Person, act: Callable[[Courier, Person], None], told: list[str]
) -> None:
    act(courier, person)
    assert types(courier) == told
    changes = courier.book.rows(
        "SELECT status_after FROM events WHERE status_after <> coalesce(status_before, '') "
        "AND status_after IN ('succeeded', 'failed', 'needs_human', 'stale') ORDER BY sequence"
    )
    assert types(courier) == [f"order.{row['status_after']}" for row in changes]
    assert len({row["callback_id"] for row in courier.filed()}) == len(told)


@pytest.mark.parametrize(
    ("second", "number", "told"),
    [(TaskStatus.FAILED, None, "order.failed"), (TaskStatus.SUCCEEDED, "R-2", "order.succeeded")],
)
def test_a_revised_statement_calls_back_once_more(
    courier: Courier, person: Person, second: TaskStatus, number: str | None, told: str
) -> None:
    expire_now(courier, person)
    person.resolve(number="R-1")
    person.resolve(second, number=number)
    assert types(courier) == ["order.stale", "order.succeeded", told]
    assert len({row["callback_id"] for row in courier.filed()}) == 3
    last = json.loads(courier.filed()[-1]["data_json"])
    assert last["status"] == second
    assert [report["site_order_id"] for report in last["reports"]] == ([number] if number else [])


def test_one_event_at_another_time_is_another_callback(courier: Courier) -> None:
    """After a restore the same number may stand for another event."""
    tell: Any = (file_callback, "po-1", URL, "order.failed", {})
    courier.file(URL)
    first = courier.book.run(*tell)
    courier.book.connection.execute("DELETE FROM callbacks")
    assert courier.book.run(*tell) == first
    courier.book.time.advance(TICK)
    assert courier.book.run(*tell) != first


def test_what_is_sent_is_the_documented_task_detail_as_it_was_then(courier: Courier, person: Person) -> None:
    courier.file(URL)
    lease = courier.book.take()
    courier.book.report(lease, OrderState.ORDERED, site_order_id="R-1", payable_yen=12_800, detail='bought "it"')
    courier.book.report(lease, OrderState.AWAITING_PAYMENT, terminal=True, terminal_status=TaskStatus.NEEDS_HUMAN)
    then = task_document(courier.book.run(lambda tx, _: with_reports(tx, tasks.get(tx, "po-1"))))
    at = courier.book.clock.now().utc
    courier.book.time.advance(60)
    person.resolve(TaskStatus.SUCCEEDED)
    delivery = courier.book.run(next_due, "http://127.0.0.1:9")
    assert delivery is not None
    assert delivery.body == dump_document({"type": "order.needs_human", "timestamp": at, "data": then})
    assert INTENT in delivery.body, "character for character"
    assert json.loads(delivery.body)["data"]["status"] == "needs_human"


def test_what_changes_no_status_is_not_told(courier: Courier, person: Person) -> None:
    courier.file(URL)
    lease = courier.book.take()
    courier.book.report(lease, OrderState.IN_CART)
    courier.book.renew(lease)
    for _ in range(2):
        done = courier.book.report(lease, OrderState.PAID, terminal=True)
        assert isinstance(done, Reported)
    courier.book.report(lease, OrderState.SHIPPED)
    person.cancel()
    assert types(courier) == ["order.succeeded"]


def test_nobody_is_told_where_nobody_asked(book: Book) -> None:
    book.submit()
    book.cancel()
    assert book.rows("SELECT * FROM callbacks") == []


def test_the_callback_commits_with_the_change_or_not_at_all(courier: Courier) -> None:
    courier.file(URL)

    def cancel_and_fail(tx: Transaction, now: object) -> None:
        cancel(tx, now, "po-1", "not wanted", UPSTREAM)  # type: ignore[arg-type]
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        courier.book.run(cancel_and_fail)
    assert courier.book.status() is TaskStatus.QUEUED
    assert types(courier) == []


@pytest.mark.parametrize("terminal", [False, True])
def test_a_report_that_contradicts_a_person_is_told(courier: Courier, person: Person, terminal: bool) -> None:
    courier.file(URL)
    lease = courier.book.take()
    courier.book.report(lease, terminal=True, terminal_status=TaskStatus.NEEDS_HUMAN)
    person.fail()
    for _ in range(2):
        courier.book.report(lease, OrderState.PAID, terminal=terminal, site_order_id="R-1")
    assert types(courier) == ["order.needs_human", "order.failed", "order.failed"], "told once, with an id of its own"
    data = json.loads(courier.filed()[-1]["data_json"])
    assert data["placement"] == "certain"
    assert terminal or data["reports"][-1]["site_order_id"] == "R-1"
    assert ("contradicting_report", "po-1") in courier.book.alerts()


def test_a_report_that_contradicts_the_worker_itself_only_alerts(courier: Courier) -> None:
    courier.file(URL)
    lease = courier.book.take()
    courier.book.report(lease, terminal=True, terminal_status=TaskStatus.FAILED)
    courier.book.report(lease, OrderState.PAID, site_order_id="R-1")
    assert ("contradicting_report", "po-1") in courier.book.alerts()
    assert types(courier) == ["order.failed"]


async def test_a_dropped_intent_is_sent_as_what_is_left(courier: Courier, receiver: Receiver) -> None:
    courier.cancelled(receiver.url)
    courier.book.connection.execute("UPDATE tasks SET intent_json = '{}', intent_digest = 'x'")
    await courier.run()
    assert receiver.received[0].json["data"]["intent"] == {}
