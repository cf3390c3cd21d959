"""What workers tell (docs/specification.md#reports): the mirror, the end, late truth, numbers, placement."""

from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.models import Actor, Lease, OtherOrders, Renewed, Reported
from gateway.domain.refusals import Reason
from gateway.domain.states import ENDED, OrderState, Placement, TaskStatus
from gateway.operations.restore import mark_restored
from gateway.orders.expire import expire_due
from tests.gateway.operations.person import Person
from tests.gateway.support.book import Book, refused
from tests.gateway.support.manual_time import TICK

S = OrderState


def accepted(outcome: object) -> Reported:
    assert isinstance(outcome, Reported), outcome
    return outcome


def mirror(book: Book, task_id: str = "po-1") -> list[dict[str, Any]]:
    return book.rows("SELECT * FROM reports WHERE task_id = ? ORDER BY row", task_id)


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


# Late truth.


def late(book: Book) -> tuple[Lease, TaskStatus]:
    lease = book.take()
    book.lapse(lease)
    return lease, TaskStatus.STALE


def test_a_report_at_the_deadline_is_late_one_tick_earlier_it_is_not(book: Book) -> None:
    lease = book.take()
    deadline = book.task().lease_deadline_us
    book.lapse(lease)
    book.time.advance(-TICK)
    accepted(book.report(lease, S.CREATED, sequence=1))
    book.time.advance(TICK)
    assert book.clock.now().elapsed_us == deadline
    assert refused(book.report(lease, S.IN_CART, sequence=2)).reason is Reason.LEASE_INVALID


def test_a_late_report_is_kept_and_alerts_and_the_caller_is_told(book: Book) -> None:
    lease, _ = late(book)
    refusal = refused(book.report(lease, S.ORDERED, sequence=4, site_order_id="266123-1", detail="it went through"))
    assert (refusal.reason, refusal.recorded_late) == (Reason.LEASE_INVALID, True)
    assert "recorded late" in refusal.message
    assert book.status() is TaskStatus.STALE
    assert mirror(book) == []
    (said,) = book.details("report_refused")
    assert (said["state"], said["site_order_id"], said["detail"], said["sequence"]) == (
        "ordered",
        "266123-1",
        "it went through",
        4,
    )
    assert {("late_report", "po-1"), ("task_stale", "po-1")} <= book.alerts()
    assert book.task().placement is Placement.CERTAIN


def test_a_repeated_late_report_is_kept_once_also_with_another_in_between(book: Book) -> None:
    lease, _ = late(book)
    for sequence in (1, 2, 1, 2, 2):
        book.report(lease, S.ORDERED if sequence == 1 else S.PAID, sequence=sequence)
    assert [said["sequence"] for said in book.details("report_refused")] == [1, 2]


def test_a_stranger_s_report_is_kept(book: Book) -> None:
    lease = book.take()
    stranger = book.holder(lease, worker_id="w2", token=book.new_token())
    refusal = refused(book.report(lease, S.ORDERED, holder=stranger))
    assert (refusal.reason, refusal.recorded_late) == (Reason.LEASE_INVALID, True)
    assert book.details("report_refused")[0]["by"] == "w2"
    assert book.status() is TaskStatus.LEASED


def test_a_report_on_a_task_never_leased_is_kept_and_refused_as_lease_invalid(book: Book) -> None:
    lease = book.take()
    book.submit("po-2")
    refusal = refused(book.report(lease, S.ORDERED, holder=book.holder(lease, task_id="po-2")))
    assert refusal.reason is Reason.LEASE_INVALID
    assert book.details("report_refused", "po-2")
    assert book.task("po-2").placement is Placement.CERTAIN


def test_a_report_on_an_unknown_task_is_not_found(book: Book) -> None:
    lease = book.take()
    assert refused(book.report(lease, holder=book.holder(lease, task_id="po-9"))).reason is Reason.TASK_NOT_FOUND


def test_no_token_shows_in_the_history(book: Book) -> None:
    lease, _ = late(book)
    book.report(lease, S.ORDERED)
    book.renew(lease)
    book.permit(lease)
    assert lease.token not in str(book.rows("SELECT * FROM events")) + str(book.rows("SELECT * FROM alerts"))


# Numbers.


def test_one_number_on_two_tasks_alerts(book: Book) -> None:
    first = book.take("po-1")
    book.report(first, S.PAID, site_order_id="266123-1", terminal=True)
    second = book.take("po-2")
    assert not any(kind == "site_order_id_conflict" for kind, _ in book.alerts())
    book.report(second, S.ORDERED, site_order_id="266123-1")
    assert ("site_order_id_conflict", "rakuten/266123-1") in book.alerts()


def test_one_number_on_two_sites_is_no_matter(book: Book) -> None:
    first = book.take("po-1")
    book.report(first, S.PAID, site_order_id="266123-1", terminal=True)
    book.submit("po-2", "sandbox")
    second = book.take("po-2")
    book.report(second, S.ORDERED, site_order_id="266123-1")
    assert not any(kind == "site_order_id_conflict" for kind, _ in book.alerts())


@pytest.mark.parametrize("other_state", [S.ORDERED, S.PAID])
def test_two_numbers_on_one_task_alert(book: Book, other_state: S) -> None:
    lease = book.take()
    book.report(lease, S.ORDERED, sequence=1, site_order_id="266123-1")
    assert book.alerts() == set()
    book.report(lease, other_state, sequence=2, site_order_id="266123-2")
    assert ("site_order_id_conflict", "po-1") in book.alerts()


def test_a_number_told_late_counts_as_well(book: Book) -> None:
    lease, _ = late(book)
    book.report(lease, S.ORDERED, site_order_id="266123-1")
    second = book.take("po-2")
    book.report(second, S.ORDERED, site_order_id="266123-1")
    assert ("site_order_id_conflict", "rakuten/266123-1") in book.alerts()


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


# Orders of other tasks, which a look at the site leaves out.


def others(book: Book, lease: Lease) -> OtherOrders:
    """What the gateway says after a look at the site that found something."""
    renewed = book.renew(lease, with_others=True)
    assert isinstance(renewed, Renewed)
    assert renewed.others is not None
    return renewed.others


def end(book: Book, lease: Lease, **fields: Any) -> None:
    book.report(lease, S.CREATED, terminal=True, terminal_status=TaskStatus.FAILED, **fields)


def test_every_lease_brings_the_numbers_of_other_tasks_however_they_were_told(book: Book) -> None:
    done = book.take("po-0")
    book.report(done, S.PAID, site_order_id="266123-0", terminal=True)
    lapsed = book.take("po-1")
    book.permit(lapsed)
    book.lapse(lapsed)
    book.report(lapsed, S.ORDERED, site_order_id="266123-1")
    assert book.details("report_refused", "po-1")  # only a refused report told it
    first = book.take("po-2")
    expected = OtherOrders(("266123-1", "266123-0"), incomplete=False)
    assert first.others == expected
    assert book.retake(first).others == expected


def test_a_number_that_comes_between_the_lease_and_the_look_is_known_at_the_look(book: Book) -> None:
    lapsed = book.take("po-1")
    book.permit(lapsed)
    book.lapse(lapsed)
    lease = book.take("po-2")
    assert lease.others == OtherOrders((), incomplete=True)
    book.report(lapsed, S.ORDERED, site_order_id="266123-1")
    assert others(book, lease) == OtherOrders(("266123-1",), incomplete=False)
    renewed = book.renew(lease)
    assert isinstance(renewed, Renewed)
    assert renewed.others is None  # it is only looked for where it is asked for


def test_numbers_are_the_sites_own_and_none_is_the_tasks_own(book: Book) -> None:
    book.submit("po-1", site="sandbox")
    other_site = book.take("po-1")
    book.report(other_site, S.PAID, site_order_id="266123-1", terminal=True)
    lease = book.take("po-2")
    book.report(lease, S.ORDERED, site_order_id="266123-2")
    assert others(book, lease) == OtherOrders((), incomplete=False)


def test_more_numbers_than_an_answer_holds_are_told_to_be_incomplete(book: Book) -> None:
    lease = book.take("po-1")
    book.report(lease, S.PAID, site_order_id="266123-0", terminal=True)
    lease = book.take("po-2")
    copy = "INSERT INTO order_numbers SELECT site, ?, task_id, told_at, 0 FROM order_numbers LIMIT 1"
    for number in range(999):
        book.connection.execute(copy, (f"n-{number}",))
    told = others(book, lease)
    assert (len(told.site_order_ids), told.incomplete) == (1_000, False)
    book.connection.execute(copy, ("n-999",))
    told = others(book, lease)
    assert (len(told.site_order_ids), told.incomplete) == (1_000, True)


def test_a_task_that_may_have_an_order_without_a_number_makes_the_others_incomplete(book: Book) -> None:
    clicked = book.take("po-1")
    book.permit(clicked)
    book.lapse(clicked)
    lease = book.take("po-2")
    assert lease.others.incomplete
    end(book, lease)
    found = book.retake_stale(clicked)
    assert not found.others.incomplete  # its own order is not another one's
    book.report(found, S.ORDERED, site_order_id="266123-1", terminal=True, terminal_status=TaskStatus.NEEDS_HUMAN)
    third = book.take("po-3")
    assert third.others == OtherOrders(("266123-1",), incomplete=False)


@pytest.mark.parametrize("status", sorted(ENDED))
def test_a_workers_end_without_a_number_leaves_the_order_in_doubt(book: Book, status: TaskStatus) -> None:
    clicked = book.take("po-1")
    book.permit(clicked)
    book.report(clicked, S.IN_CART, terminal=True, terminal_status=status)
    assert book.take("po-2").others.incomplete


@pytest.mark.parametrize("status", sorted(ENDED))
def test_a_workers_end_before_any_permit_leaves_no_doubt(book: Book, status: TaskStatus) -> None:
    book.report(book.take("po-1"), S.IN_CART, terminal=True, terminal_status=status)
    assert book.take("po-2").others == OtherOrders((), incomplete=False)


def test_a_person_who_found_no_order_ends_the_doubt_and_one_who_found_it_does_not(book: Book) -> None:
    person = Person(book)
    clicked = book.take("po-1")
    book.permit(clicked)
    book.lapse(clicked)
    book.run(expire_due)
    book.time.advance(book.policy.permit_settle)
    lease = book.take("po-2")
    person.fail("po-1")
    assert others(book, lease) == OtherOrders((), incomplete=False)
    person.resolve(TaskStatus.FAILED, "po-1", state=S.CANCELLED)
    assert others(book, lease).incomplete  # it is there, cancelled, and nobody said which
    person.resolve(TaskStatus.SUCCEEDED, "po-1", number="266123-1")
    assert others(book, lease) == OtherOrders(("266123-1",), incomplete=False)


def test_after_a_restore_tasks_may_be_forgotten_that_have_ordered(book: Book) -> None:
    book.run(mark_restored, "backup.db", Actor("operator"), book.new_token)
    book.resume()
    assert book.take("po-1").others == OtherOrders((), incomplete=True)
    book.time.advance(timedelta(days=1) + TICK)
    book.submit("po-2")
    lease = book.open(book.request(session="session-two-days-later"))
    assert lease is not None
    assert lease.others == OtherOrders((), incomplete=False)


# Placement.


def test_placement_is_impossible_possible_certain(book: Book) -> None:
    lease = book.take()
    book.report(lease, S.IN_CART)
    assert book.task().placement is Placement.IMPOSSIBLE
    book.permit(lease)
    assert book.task().placement is Placement.POSSIBLE
    book.report(lease, S.ORDERED)
    assert book.task().placement is Placement.CERTAIN


def test_a_lease_over_rest_makes_an_order_possible_until_its_undo(book: Book) -> None:
    book.submit()
    lease = book.open(book.rest_request())
    assert lease is not None
    assert book.task().placement is Placement.POSSIBLE
    assert book.undo(lease)
    assert book.task().placement is Placement.IMPOSSIBLE
