"""Who may click (docs/specification.md#submit-permit): each rule with its refusal and its passing counterpart."""

from dataclasses import replace
from datetime import timedelta

import pytest

from gateway.domain.leases import Lease, Permit, Verdict, Verification
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, Placement, TaskStatus
from gateway.orders.expire import expire_due
from tests.gateway.support.book import JOURNAL, LOOK, OTHER_JOURNAL, Book, reason, refused
from tests.gateway.support.manual_time import TICK

PERMIT_TTL = timedelta(seconds=30)
SETTLE = timedelta(seconds=900)


def granted(outcome: object) -> Permit:
    assert isinstance(outcome, Permit), outcome
    return outcome


def look_now(book: Book, lease: Lease) -> Verification:
    """A look at the site that begins now."""
    return replace(LOOK, begun_at=book.lease_age(lease))


def keep_alive(book: Book, lease: Lease, span: timedelta) -> None:
    """Let time pass with the lease renewed in between."""
    while span > timedelta():
        step = min(span, timedelta(seconds=200))
        book.time.advance(step)
        span -= step
        book.lease_age(lease)


def test_a_first_lease_gets_a_permit(book: Book) -> None:
    lease = book.take()
    permit = granted(book.permit(lease))
    assert permit.valid_for == PERMIT_TTL
    assert book.task().submit_permitted_at == permit.permitted_at
    assert book.events()[-1] == "permit"


def test_a_lease_that_is_not_acknowledged_gets_none_until_it_is(book: Book) -> None:
    lease = book.take(acknowledge=False)
    assert reason(book.permit(lease)) is Reason.LEASE_NOT_ACKNOWLEDGED
    assert book.task().placement is Placement.IMPOSSIBLE
    book.renew(lease)
    granted(book.permit(lease))


def test_another_journal_than_the_lease_s_gets_none(book: Book) -> None:
    lease = book.take()
    assert reason(book.permit(lease, journal=OTHER_JOURNAL)) is Reason.PERMIT_OTHER_JOURNAL
    granted(book.permit(lease))


def test_another_token_or_worker_gets_none(book: Book) -> None:
    lease = book.take()
    assert reason(book.permit(lease, token=book.new_token())) is Reason.LEASE_INVALID
    assert reason(book.permit(lease, worker_id="w2")) is Reason.LEASE_INVALID
    granted(book.permit(lease))


def test_an_expired_lease_gets_none_one_tick_earlier_it_does(book: Book) -> None:
    early, late = book.take("po-1"), None
    book.lapse(early)
    book.time.advance(-TICK)
    granted(book.permit(early))
    book.time.advance(TICK)
    late = book.permit(early)
    assert reason(late) is Reason.LEASE_INVALID
    assert book.status() is TaskStatus.STALE


@pytest.mark.parametrize(
    "state", [state for state in OrderState if state not in (OrderState.CREATED, OrderState.IN_CART)]
)
def test_an_order_known_by_an_accepted_report_gets_none(book: Book, state: OrderState) -> None:
    lease = book.take()
    book.report(lease, state)
    assert reason(book.permit(lease)) is Reason.PERMIT_ORDER_KNOWN


def test_an_order_known_by_its_number_gets_none(book: Book) -> None:
    lease = book.take()
    book.report(lease, OrderState.IN_CART, site_order_id="266123-1")
    assert reason(book.permit(lease)) is Reason.PERMIT_ORDER_KNOWN


@pytest.mark.parametrize("state", [OrderState.CREATED, OrderState.IN_CART])
def test_states_before_the_order_do_not_stand_in_the_way(book: Book, state: OrderState) -> None:
    lease = book.take()
    book.report(lease, state)
    granted(book.permit(lease))


@pytest.mark.parametrize("told", [{"state": OrderState.ORDERED}, {"state": OrderState.IN_CART, "site_order_id": "1-2"}])
def test_an_order_known_by_a_refused_report_gets_none(book: Book, told: dict[str, object]) -> None:
    lease = book.take()
    book.lapse(lease)
    assert refused(book.report(lease, **told)).recorded_late  # type: ignore[arg-type]
    again = book.retake_stale(lease)
    assert reason(book.permit(again, look=look_now(book, again))) is Reason.PERMIT_ORDER_KNOWN


def test_a_refused_report_of_a_stranger_counts_too(book: Book) -> None:
    lease = book.take()
    book.report(lease, OrderState.ORDERED, holder=book.holder(lease, worker_id="w9", token=book.new_token()))
    assert reason(book.permit(lease)) is Reason.PERMIT_ORDER_KNOWN


@pytest.mark.parametrize("site", ["", "rakuten"])
def test_a_pause_for_all_or_for_the_site_refuses_and_its_end_lets_go_on(book: Book, site: str) -> None:
    lease = book.take()
    book.pause(site)
    refusal = refused(book.permit(lease))
    assert refusal.reason is Reason.DISPATCH_PAUSED
    assert refusal.retry_after is not None
    book.resume(site)
    granted(book.permit(lease))


def test_a_pause_of_another_site_does_not_matter(book: Book) -> None:
    lease = book.take()
    book.pause("sandbox")
    granted(book.permit(lease))


def test_a_pause_does_not_take_back_a_permit(book: Book) -> None:
    lease = book.take()
    permit = granted(book.permit(lease))
    book.pause()
    assert granted(book.permit(lease)).permitted_at == permit.permitted_at


@pytest.mark.parametrize(
    "look",
    [
        None,
        replace(LOOK, verdict=Verdict.UNKNOWN),
        replace(LOOK, verdict=Verdict.ORDERED),
        replace(LOOK, window_fully_covered=False),
        replace(LOOK, evidence_ref=None),
    ],
)
def test_a_recovered_task_that_is_not_verified_gets_none(book: Book, look: Verification | None) -> None:
    lease = book.retake(book.take())
    assert reason(book.permit(lease, look=look)) is Reason.PERMIT_NOT_VERIFIED
    granted(book.permit(lease, look=LOOK))


def test_a_verification_not_made_under_this_lease_gets_none(book: Book) -> None:
    lease = book.retake(book.take())
    book.time.advance(10)
    age = book.lease_age(lease)
    assert reason(book.permit(lease, look=replace(LOOK, begun_at=age + TICK))) is Reason.PERMIT_NOT_VERIFIED
    assert reason(book.permit(lease, look=replace(LOOK, begun_at=-TICK))) is Reason.PERMIT_NOT_VERIFIED
    granted(book.permit(lease, look=replace(LOOK, begun_at=age)))


def test_a_requeued_task_must_be_verified_too(book: Book) -> None:
    book.lapse(book.take())
    book.run(expire_due)
    book.connection.execute("UPDATE tasks SET status = 'queued'")
    again = book.take()
    assert again.lease_count == 2
    assert reason(book.permit(again)) is Reason.PERMIT_NOT_VERIFIED
    granted(book.permit(again, look=LOOK))


def test_a_second_lease_without_an_earlier_permit_needs_no_attestation_and_no_settle_time(book: Book) -> None:
    first = book.take()
    second = book.retake(first, journal=OTHER_JOURNAL)
    granted(book.permit(second, journal=OTHER_JOURNAL, look=LOOK))


def test_after_an_earlier_permit_another_journal_gets_none(book: Book) -> None:
    first = book.take()
    granted(book.permit(first))
    second = book.retake(first, journal=OTHER_JOURNAL)
    keep_alive(book, second, SETTLE + PERMIT_TTL)
    look = look_now(book, second)
    refusal = book.permit(second, journal=OTHER_JOURNAL, attests=True, look=look)
    assert reason(refusal) is Reason.PERMIT_OTHER_JOURNAL


def test_after_an_earlier_permit_the_same_journal_must_attest(book: Book) -> None:
    first = book.take()
    granted(book.permit(first))
    second = book.retake(first)
    keep_alive(book, second, SETTLE + PERMIT_TTL)
    look = look_now(book, second)
    assert reason(book.permit(second, attests=False, look=look)) is Reason.PERMIT_NOT_ATTESTED
    granted(book.permit(second, attests=True, look=look))


def test_the_settle_time_counts_from_the_end_of_the_lease_where_that_is_later(book: Book) -> None:
    first = book.take()
    granted(book.permit(first))
    second = book.retake(first)  # its lease ended just now, 300 s after a permit of 30 s
    keep_alive(book, second, SETTLE - TICK)
    refusal = refused(book.permit(second, attests=True, look=look_now(book, second)))
    assert refusal.reason is Reason.PERMIT_NOT_SETTLED
    assert refusal.retry_after == TICK
    book.time.advance(TICK)
    granted(book.permit(second, attests=True, look=look_now(book, second)))


def test_the_settle_time_counts_from_the_permit_s_expiry_where_that_is_later(book: Book) -> None:
    first = book.take()
    book.time.advance(290)
    granted(book.permit(first))  # good for 20 s longer than its lease
    second = book.retake(first)
    keep_alive(book, second, SETTLE + timedelta(seconds=20) - TICK)
    refusal = refused(book.permit(second, attests=True, look=look_now(book, second)))
    assert (refusal.reason, refusal.retry_after) == (Reason.PERMIT_NOT_SETTLED, TICK)
    book.time.advance(TICK)
    granted(book.permit(second, attests=True, look=look_now(book, second)))


def test_the_verification_must_begin_after_the_settle_time(book: Book) -> None:
    first = book.take()
    granted(book.permit(first))
    second = book.retake(first)
    keep_alive(book, second, SETTLE - TICK)
    early = look_now(book, second)
    book.time.advance(TICK)
    refusal = refused(book.permit(second, attests=True, look=early))
    assert (refusal.reason, refusal.retry_after) == (Reason.PERMIT_NOT_SETTLED, timedelta(0))
    granted(book.permit(second, attests=True, look=look_now(book, second)))


def test_a_third_permit_needs_all_of_it_again(book: Book) -> None:
    first = book.take()
    granted(book.permit(first))
    second = book.retake(first)
    keep_alive(book, second, SETTLE + PERMIT_TTL)
    granted(book.permit(second, attests=True, look=look_now(book, second)))
    third = book.retake(second)
    assert third.lease_count == 3
    look = look_now(book, third)
    assert reason(book.permit(third, attests=True, look=look)) is Reason.PERMIT_NOT_SETTLED
    keep_alive(book, third, SETTLE)
    granted(book.permit(third, attests=True, look=look_now(book, third)))


def test_an_earlier_lease_over_rest_may_have_clicked_from_no_journal(book: Book) -> None:
    book.submit()
    first = book.open(book.rest_request())
    assert first is not None
    assert book.task().placement is Placement.POSSIBLE
    second = book.retake(first)
    keep_alive(book, second, SETTLE)
    look = look_now(book, second)
    assert reason(book.permit(second, attests=True, look=look)) is Reason.PERMIT_OTHER_JOURNAL


def test_a_lease_over_rest_gets_no_permit_at_all(book: Book) -> None:
    book.submit()
    lease = book.open(book.rest_request())
    assert lease is not None
    book.renew(lease)
    assert reason(book.permit(lease)) is Reason.PERMIT_OTHER_JOURNAL


def test_the_same_token_gets_the_same_permit_and_not_a_longer_one(book: Book) -> None:
    lease = book.take()
    first = granted(book.permit(lease))
    book.time.advance(12)
    again = granted(book.permit(lease))
    assert again.permitted_at == first.permitted_at
    assert again.valid_for == PERMIT_TTL - timedelta(seconds=12)
    assert book.events().count("permit") == 1


def test_a_permit_that_has_run_out_is_not_given_again(book: Book) -> None:
    lease = book.take()
    granted(book.permit(lease))
    book.time.advance(PERMIT_TTL - TICK)
    assert granted(book.permit(lease)).valid_for == TICK
    book.time.advance(TICK)
    assert reason(book.permit(lease)) is Reason.PERMIT_EXPIRED
    book.renew(lease)
    assert reason(book.permit(lease)) is Reason.PERMIT_EXPIRED


def test_an_order_told_after_the_permit_takes_it_back(book: Book) -> None:
    lease = book.take()
    granted(book.permit(lease))
    book.report(lease, OrderState.ORDERED)
    assert reason(book.permit(lease)) is Reason.PERMIT_ORDER_KNOWN


def test_an_unknown_task_gets_none(book: Book) -> None:
    lease = book.take()
    assert reason(book.permit(lease, task_id="po-9")) is Reason.TASK_NOT_FOUND


def test_an_ended_task_gets_none(book: Book) -> None:
    lease = book.take()
    book.report(lease, OrderState.CREATED, terminal=True)
    assert reason(book.permit(lease)) is Reason.LEASE_INVALID


def test_every_refusal_is_in_the_history_and_a_repeat_adds_nothing(book: Book) -> None:
    lease = book.take()
    for _ in range(3):
        book.permit(lease, journal=OTHER_JOURNAL)
    assert book.events().count("permit_refused") == 1
    assert book.details("permit_refused")[0]["refusal"] == "permit_other_journal"
    assert JOURNAL not in str(book.details("permit_refused"))
