"""A dry run is never permitted (docs/specification.md#dry-run), and ends as its worker says."""

from datetime import timedelta

from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, Placement, TaskStatus
from tests.gateway.support.book import LOOK, Book, reason, terms
from tests.gateway.support.manual_time import TICK


def test_it_gets_no_permit_whatever_the_worker_shows(book: Book) -> None:
    book.submit(stop_before_submit=True)
    lease = book.take()
    assert lease.stop_before_submit
    for shown in (None, terms(1), terms(3_000)):
        assert reason(book.permit(lease, terms=shown, attests=True, look=LOOK)) is Reason.PERMIT_DRY_RUN
    assert book.task().placement is Placement.IMPOSSIBLE
    assert book.task().terms == terms(3_000), "what it would have cost is shown"


def test_it_gets_none_as_a_recovered_task_either(book: Book) -> None:
    book.submit(stop_before_submit=True)
    again = book.retake(book.take())
    assert reason(book.permit(again, look=LOOK)) is Reason.PERMIT_DRY_RUN


def test_a_dry_run_that_is_late_or_too_dear_is_a_dry_run_all_the_same(book: Book) -> None:
    book.submit(stop_before_submit=True, max_total_yen=1_000, not_after="2026-11-29T15:59:22.123456Z")
    lease = book.take()
    book.time.advance(timedelta(minutes=1) + TICK)
    assert reason(book.permit(lease, terms=terms(3_000))) is Reason.PERMIT_DRY_RUN


def test_it_ends_as_succeeded_in_the_cart_and_alerts_nobody(book: Book) -> None:
    book.submit(stop_before_submit=True)
    lease = book.take()
    book.permit(lease, terms=terms(3_000))
    book.report(
        lease, OrderState.IN_CART, sequence=1, terminal=True, terminal_status=TaskStatus.SUCCEEDED, detail="dry run"
    )
    task = book.task()
    assert (task.status, task.latest_state, task.placement) == (
        TaskStatus.SUCCEEDED,
        OrderState.IN_CART,
        Placement.IMPOSSIBLE,
    )
    assert book.alerts() == set()


def test_a_repeat_that_is_no_dry_run_changes_nothing(book: Book) -> None:
    book.submit(stop_before_submit=True)
    assert book.submit(stop_before_submit=True).differs == ()
    assert book.submit().differs == ("stop_before_submit",)
    assert book.task().stop_before_submit
