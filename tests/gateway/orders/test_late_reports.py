"""Late truth (docs/specification.md#reports): kept, told and alerted, whoever brings it."""

from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, Placement, TaskStatus
from tests.gateway.orders.reporting import accepted, late, mirror
from tests.gateway.support.book import Book, refused
from tests.gateway.support.manual_time import TICK

S = OrderState


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
