"""What workers tell (docs/specification.md#reports): the mirror and the end."""

from typing import Any

import pytest

from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, Placement, TaskStatus
from tests.gateway.orders.reporting import accepted, mirror
from tests.gateway.support.book import Book, refused

S = OrderState


def row(book: Book, state: OrderState) -> dict[str, Any]:
    (found,) = [entry for entry in mirror(book) if entry["state"] == state]
    return found


# The mirror.


def test_a_repeat_overwrites_keeps_its_place_and_its_first_time(book: Book) -> None:
    lease = book.take()
    accepted(book.report(lease, S.CREATED, sequence=1, detail="one"))
    first = row(book, S.CREATED)
    accepted(book.report(lease, S.IN_CART, sequence=2))
    book.time.advance(5)
    assert not accepted(book.report(lease, S.CREATED, sequence=3, detail="two")).recorded
    assert [entry["state"] for entry in mirror(book)] == [S.CREATED, S.IN_CART]
    assert row(book, S.CREATED)["detail"] == "two"
    assert row(book, S.CREATED)["reported_at"] == first["reported_at"]
    assert [said.get("detail") for said in book.details("report")] == ["one", None, "two"]


def test_an_absent_field_never_erases(book: Book) -> None:
    lease = book.take()
    full = {
        "payable_yen": 12800,
        "pay_deadline": "2026-12-02T14:59:00.000000Z",
        "site_order_id": "266123-1",
        "evidence_ref": "po-1/03-order-confirm",
        "detail": "payment number 1",
        "error_code": 5001,
    }
    book.report(lease, S.ORDERED, sequence=1, **full)
    book.report(lease, S.ORDERED, sequence=2)
    assert {name: row(book, S.ORDERED)[name] for name in full} == full


def test_zero_yen_is_a_value_and_overwrites(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.ORDERED, sequence=1, payable_yen=12800)
    book.report(lease, S.ORDERED, sequence=2, payable_yen=0)
    assert row(book, S.ORDERED)["payable_yen"] == 0


def test_a_delayed_duplicate_does_not_move_the_order_backwards(book: Book) -> None:
    lease = book.take()
    for sequence, state in enumerate((S.CREATED, S.IN_CART, S.ORDERED), start=1):
        book.report(lease, state, sequence=sequence)
    assert not accepted(book.report(lease, S.IN_CART, sequence=2)).recorded
    assert book.task().latest_state is S.ORDERED


def test_a_state_that_arrives_late_for_the_first_time_does_not_move_it_backwards_either(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.ORDERED, sequence=3)
    assert accepted(book.report(lease, S.IN_CART, sequence=2)).recorded
    assert book.task().latest_state is S.ORDERED


def test_a_delayed_report_does_not_overwrite_newer_values_but_fills_what_is_missing(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.ORDERED, sequence=5, detail="new", payable_yen=100)
    book.report(lease, S.ORDERED, sequence=4, detail="old", payable_yen=99, site_order_id="266123-1")
    told = row(book, S.ORDERED)
    assert (told["detail"], told["payable_yen"], told["site_order_id"]) == ("new", 100, "266123-1")


def test_the_sequence_starts_again_with_each_lease(book: Book) -> None:
    first = book.take()
    book.report(first, S.IN_CART, sequence=40)
    second = book.retake(first)
    book.report(second, S.ORDERED, sequence=1)
    assert book.task().latest_state is S.ORDERED


def test_without_a_sequence_the_state_first_told_last_is_the_latest(book: Book) -> None:
    lease = book.take()
    for state in (S.CREATED, S.IN_CART, S.ORDERED, S.IN_CART):
        book.report(lease, state)
    assert book.task().latest_state is S.ORDERED


def test_without_a_sequence_a_repeat_overwrites_and_moves_nothing(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.IN_CART, sequence=1, detail="one")
    book.report(lease, S.ORDERED, sequence=2)
    assert not accepted(book.report(lease, S.IN_CART, detail="two")).recorded
    assert row(book, S.IN_CART)["detail"] == "two"
    assert book.task().latest_state is S.ORDERED


def test_a_report_without_a_sequence_does_not_let_an_older_one_through(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.ORDERED, sequence=3)
    book.report(lease, S.PAID)
    book.report(lease, S.IN_CART, sequence=2)
    assert book.task().latest_state is S.PAID


def test_a_report_does_not_extend_the_lease(book: Book) -> None:
    lease = book.take()
    deadline = book.task().lease_deadline_us
    book.time.advance(10)
    book.report(lease)
    assert book.task().lease_deadline_us == deadline


def test_a_report_is_a_heartbeat_of_its_worker(book: Book) -> None:
    lease = book.take()
    book.time.advance(10)
    book.report(lease)
    (worker,) = book.rows("SELECT last_seen_us FROM workers")
    assert worker["last_seen_us"] == book.clock.now().elapsed_us


# The end.


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (S.PAID, TaskStatus.SUCCEEDED),
        (S.CANCELLED, TaskStatus.FAILED),
        *(
            (state, TaskStatus.NEEDS_HUMAN)
            for state in (S.CREATED, S.IN_CART, S.ORDERED, S.AWAITING_PAYMENT, S.SHIPPED, S.DELIVERED)
        ),
    ],
)
def test_a_terminal_report_without_a_status_ends_by_its_state(book: Book, state: S, status: TaskStatus) -> None:
    lease = book.take()
    assert accepted(book.report(lease, state, terminal=True)).status is status
    task = book.task()
    assert (task.status, task.lease_owner, task.lease_expires_at) == (status, None, None)


@pytest.mark.parametrize("status", [TaskStatus.SUCCEEDED, TaskStatus.FAILED, TaskStatus.NEEDS_HUMAN])
def test_a_terminal_report_with_a_status_ends_by_it(book: Book, status: TaskStatus) -> None:
    lease = book.take()
    assert accepted(book.report(lease, S.CREATED, terminal=True, terminal_status=status)).status is status


def test_an_end_with_nothing_done_keeps_the_latest_state_or_is_created(book: Book) -> None:
    lease = book.take()
    book.report(lease, None, terminal=True)
    assert book.task().latest_state is S.CREATED
    other = book.take("po-2")
    book.report(other, S.IN_CART)
    book.report(other, None, terminal=True)
    assert book.task("po-2").latest_state is S.IN_CART


def test_a_task_that_needs_a_person_alerts(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.CREATED, terminal=True)
    assert ("task_needs_human", "po-1") in book.alerts()


def test_the_end_frees_the_slot(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.PAID, terminal=True)
    assert book.take("po-2").task_id == "po-2"


def test_a_repeated_terminal_report_succeeds(book: Book) -> None:
    lease = book.take()
    first = accepted(book.report(lease, S.PAID, sequence=1, terminal=True))
    again = accepted(book.report(lease, S.PAID, sequence=1, terminal=True))
    assert (first.recorded, again.recorded) == (True, False)
    assert again.status is TaskStatus.SUCCEEDED
    assert book.alerts() == set()


def test_a_repeated_terminal_report_that_failed_after_an_order_alerts_nobody(book: Book) -> None:
    lease = book.take()
    for _ in range(2):
        accepted(book.report(lease, S.ORDERED, sequence=1, terminal=True, terminal_status=TaskStatus.FAILED))
    assert "contradicting_report" not in {kind for kind, _ in book.alerts()}


@pytest.mark.parametrize("decided", [TaskStatus.SUCCEEDED, TaskStatus.FAILED])
def test_a_repeated_terminal_report_succeeds_after_a_person_has_decided(book: Book, decided: TaskStatus) -> None:
    lease = book.take()
    accepted(book.report(lease, S.AWAITING_PAYMENT, sequence=1, terminal=True))
    book.connection.execute("UPDATE tasks SET status = ?", (decided,))
    again = accepted(book.report(lease, S.AWAITING_PAYMENT, sequence=1, terminal=True))
    assert again.status is decided


@pytest.mark.parametrize(
    ("state", "status"),
    [(S.CANCELLED, None), (S.PAID, TaskStatus.NEEDS_HUMAN), (S.CREATED, TaskStatus.FAILED), (S.SHIPPED, None)],
)
def test_a_terminal_report_that_contradicts_the_end_is_refused_kept_and_alerts(
    book: Book, state: S, status: TaskStatus | None
) -> None:
    lease = book.take()
    book.report(lease, S.PAID, sequence=1, terminal=True)
    before = mirror(book)
    refusal = refused(book.report(lease, state, sequence=2, terminal=True, terminal_status=status))
    assert refusal.reason is Reason.STATUS_CONFLICT
    assert refusal.recorded_late
    assert refusal.current_status is TaskStatus.SUCCEEDED
    assert book.status() is TaskStatus.SUCCEEDED
    assert mirror(book) == before
    assert book.details("report_refused")[0]["state"] == state
    assert ("contradicting_report", "po-1") in book.alerts()


def test_later_states_are_appended_after_the_end(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.PAID, sequence=1, terminal=True)
    for sequence, state in enumerate((S.SHIPPED, S.DELIVERED), start=2):
        assert accepted(book.report(lease, state, sequence=sequence)).recorded
    assert book.status() is TaskStatus.SUCCEEDED
    assert book.task().latest_state is S.DELIVERED
    assert book.alerts() == set()


def test_a_cancellation_after_success_is_kept_and_alerts(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.PAID, sequence=1, terminal=True)
    assert accepted(book.report(lease, S.CANCELLED, sequence=2)).status is TaskStatus.SUCCEEDED
    assert ("contradicting_report", "po-1") in book.alerts()


def test_an_order_found_after_failure_is_kept_and_alerts(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.CREATED, sequence=1, terminal=True, terminal_status=TaskStatus.FAILED)
    accepted(book.report(lease, S.ORDERED, sequence=2))
    assert book.status() is TaskStatus.FAILED
    assert book.task().placement is Placement.CERTAIN
    assert ("contradicting_report", "po-1") in book.alerts()


def test_only_the_last_holder_may_report_after_the_end(book: Book) -> None:
    first = book.take()
    second = book.retake(first)
    book.report(second, S.PAID, sequence=1, terminal=True)
    assert refused(book.report(first, S.SHIPPED, sequence=9, holder=book.holder(first))).recorded_late
    assert book.task().latest_state is S.PAID


def test_a_report_with_the_sequence_of_the_known_one_is_its_repeat_and_overwrites(book: Book) -> None:
    """The outbox sends a report again with less in it and a note: the same number, other words."""
    lease = book.take()
    book.report(lease, S.ORDERED, sequence=4, detail="as it was", payable_yen=980)
    assert not accepted(book.report(lease, S.ORDERED, sequence=4, detail="sent again")).recorded
    assert (row(book, S.ORDERED)["detail"], row(book, S.ORDERED)["payable_yen"]) == ("sent again", 980)
    book.report(lease, S.ORDERED, sequence=3, detail="an older one")
    assert row(book, S.ORDERED)["detail"] == "sent again"


def test_an_amount_and_a_code_of_zero_are_something_said(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.IN_CART, sequence=1, payable_yen=0, error_code=0)
    (said,) = book.details("report")
    assert (said["payable_yen"], said["error_code"]) == (0, 0)
    assert "terminal" not in said
