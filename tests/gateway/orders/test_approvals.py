"""Who must agree before an order is handed out (docs/specification.md#approval), and what a permit makes of it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.approvals import ApprovalReason
from gateway.domain.instant import utc_text
from gateway.domain.intents import intent_key
from gateway.domain.json_text import parse_again
from gateway.domain.leases import Lease, Permit
from gateway.domain.models import SameIntent
from gateway.domain.refusals import Reason
from gateway.domain.states import TaskStatus
from gateway.operations.restore import mark_restored
from gateway.orders import due
from gateway.orders.due import hold_unapproved
from gateway.orders.expire import expire_due
from gateway.orders.submit import submit
from tests.gateway.operations.person import OPERATOR, Person
from tests.gateway.support.book import UPSTREAM, Book, reason, refused, terms
from tests.gateway.support.manual_time import TICK

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
ALERT = {("approval_required", "po-1")}


@pytest.fixture
def person(book: Book) -> Person:
    return Person(book)


def held(book: Book, **fields: Any) -> None:
    """File po-1, which waits for its approval."""
    assert book.submit(requires_approval=True, **fields).held_for_approval


def approved_lease(book: Book, person: Person, total: int = 3_000) -> Lease:
    """File po-1, approve it, and take it."""
    held(book)
    assert not person.approve(total=total).repeated
    return book.take()


def test_a_held_task_is_not_handed_out_until_it_is_approved(book: Book, person: Person) -> None:
    held(book, max_total_yen=3_000)
    assert book.open() is None
    assert book.open(book.rest_request()) is None
    assert book.alerts() == ALERT
    person.approve()
    assert book.alerts() == set()
    lease = book.take()
    assert isinstance(book.permit(lease, terms=terms(3_000)), Permit)
    assert book.details("permit")[0]["approved_by"] == "mika"


def test_others_pass_a_held_task_by(book: Book, person: Person) -> None:
    held(book, max_total_yen=3_000)
    book.submit("po-2")
    lease = book.open()
    assert lease is not None
    assert lease.task_id == "po-2"
    assert person.approve("po-2").reason is Reason.STATUS_CONFLICT


@pytest.mark.parametrize(
    ("rule", "fields", "reasons"),
    [
        ({"approval_over_yen": 50_000}, {"max_total_yen": 50_000}, ()),
        ({"approval_over_yen": 50_000}, {"max_total_yen": 50_001}, ("over_yen",)),
        ({"approval_over_yen": 50_000}, {}, ("over_yen",)),
        ({"approval_over_yen": 0}, {"max_total_yen": 1}, ("over_yen",)),
        ({"approval_over_yen": 50_000}, {"stop_before_submit": True}, ()),
        ({"approval_over_yen": 50_000}, {"requires_approval": True}, ("requested", "over_yen")),
        ({"approval_always": frozenset({"rakuten"})}, {}, ("always",)),
        ({"approval_always": frozenset({"sandbox"})}, {}, ()),
        ({"approval_always": frozenset({"rakuten"})}, {"stop_before_submit": True}, ()),
        ({}, {"stop_before_submit": True, "requires_approval": True}, ("requested",)),
    ],
)
def test_which_orders_need_an_approval(
    book: Book, rule: dict[str, Any], fields: dict[str, Any], reasons: tuple[str, ...]
) -> None:
    book.policy = replace(book.policy, **rule)
    assert book.submit(**fields).held_for_approval is bool(reasons)
    assert book.task().approval_reasons == tuple(map(ApprovalReason, reasons))
    assert (book.open() is None) is bool(reasons)


def test_the_same_wish_is_held_where_the_gateway_says_so(book: Book) -> None:
    book.policy = replace(book.policy, same_intent=SameIntent.HOLD, same_intent_within=DAY)

    def wish(task_id: str, **fields: Any) -> Any:
        wanted = book.wanted(task_id, **fields)
        key = intent_key(wanted.site, wanted.account, parse_again(wanted.intent_json), len(wanted.intent_json))
        return book.run(submit, book.policy, replace(wanted, intent_key=key), UPSTREAM)

    assert not wish("po-1").held_for_approval
    again = wish("po-2")
    assert (again.same_intent_as, again.held_for_approval) == ("po-1", True)
    assert book.task("po-2").approval_reasons == (ApprovalReason.SAME_INTENT,)
    assert not wish("po-3", intent_json='{"other": 1}').held_for_approval
    assert wish("po-2").created is False
    book.time.advance(2 * DAY)
    assert not wish("po-4").held_for_approval


def test_a_permit_over_the_approved_total_is_refused_and_at_it_granted_once(book: Book, person: Person) -> None:
    lease = approved_lease(book, person)
    refusal = refused(book.permit(lease, terms=terms(3_001)))
    assert refusal.reason is Reason.TERMS_OVER_CAP
    assert "3001 yen to pay are more than the 3000 yen that mika approved" in refusal.message
    assert reason(book.permit(lease)) is Reason.PERMIT_TERMS_REQUIRED
    first = book.permit(lease, terms=terms(3_000))
    assert isinstance(first, Permit)
    assert isinstance(book.permit(lease, terms=terms(3_000)), Permit), "the same permit again"
    (row,) = book.rows("SELECT used_by_lease, ended_at FROM approvals")
    assert (row["used_by_lease"], row["ended_at"]) == (1, first.permitted_at)


def test_a_lower_total_needs_no_second_approval(book: Book, person: Person) -> None:
    assert isinstance(book.permit(approved_lease(book, person), terms=terms(1)), Permit)


def test_an_approval_is_good_at_its_last_tick_and_not_one_later(book: Book, person: Person) -> None:
    held(book)
    person.approve(total=3_000, valid_for=HOUR)
    book.time.advance(HOUR - TICK - TICK)
    lease = book.take()
    book.time.advance(TICK)
    book.time.advance(TICK)
    book.time.advance(TICK)
    refusal = refused(book.permit(lease, terms=terms(3_000)))
    assert refusal.reason is Reason.APPROVAL_EXPIRED
    assert "the approval of mika ran out at" in refusal.message


def test_an_approval_at_its_end_is_used(book: Book, person: Person) -> None:
    held(book)
    person.approve(total=3_000, valid_for=HOUR)
    book.time.advance(HOUR - TICK)
    lease = book.take()
    book.time.advance(TICK)
    assert isinstance(book.permit(lease, terms=terms(3_000)), Permit)


def test_an_approval_that_runs_out_in_the_queue_holds_its_task_again(book: Book, person: Person) -> None:
    held(book)
    person.approve(total=3_000)
    book.time.advance(DAY)
    assert not book.task().is_held_for_approval
    book.time.advance(TICK)
    assert book.open() is None, "judged at use"
    assert book.task().is_held_for_approval
    assert book.alerts() == ALERT
    assert book.events() == ["submit", "approve", "approval_expire"]
    person.approve(total=3_000)
    assert book.open() is not None


def test_the_sweep_ends_what_has_run_out_wherever_its_task_is(book: Book, person: Person) -> None:
    approved_lease(book, person)
    book.time.advance(DAY + TICK)
    assert book.run(hold_unapproved) == 1
    assert book.run(hold_unapproved) == 0
    assert book.alerts() == set()


def test_of_more_than_a_batch_that_ran_out_none_is_handed_out(
    book: Book, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "BATCH", 1)
    for task_id in ("po-1", "po-2"):
        book.submit(task_id, requires_approval=True)
        person.approve(task_id, 3_000)
    book.time.advance(DAY + TICK)
    assert book.open() is None
    assert book.open() is None


def test_a_requeued_task_that_was_permitted_needs_a_new_approval(book: Book, person: Person) -> None:
    lease = approved_lease(book, person)
    assert isinstance(book.permit(lease, terms=terms(3_000)), Permit)
    book.lapse(lease)
    person.requeue()
    assert book.task().is_held_for_approval
    assert book.alerts() == ALERT
    assert book.open() is None
    assert not person.approve(total=3_000).repeated
    assert book.open() is not None


def test_a_requeued_task_that_was_not_permitted_keeps_its_approval(book: Book, person: Person) -> None:
    book.lapse(approved_lease(book, person))
    person.requeue()
    assert book.alerts() == set()
    assert book.open() is not None


def test_a_reclaimed_task_that_was_permitted_needs_a_new_approval(book: Book, person: Person) -> None:
    lease = approved_lease(book, person)
    assert isinstance(book.permit(lease, terms=terms(3_000)), Permit)
    again = book.retake(lease)
    refusal = refused(book.permit(again, terms=terms(3_000)))
    assert refusal.reason is Reason.APPROVAL_REQUIRED
    assert "was used by lease 1" in refusal.message
    assert not person.approve(total=3_000, why="looked at the site: nothing there").repeated
    assert reason(book.permit(again, terms=terms(3_000))) is Reason.PERMIT_NOT_VERIFIED


def test_an_approval_that_another_takes_the_place_of_is_good_no_more(book: Book, person: Person) -> None:
    lease = approved_lease(book, person)
    person.approve(total=2_000)
    assert reason(book.permit(lease, terms=terms(3_000))) is Reason.TERMS_OVER_CAP
    assert len(book.rows("SELECT 1 FROM approvals WHERE ended_at IS NULL")) == 1


def test_after_a_cancelled_lease_the_approval_stands(book: Book, person: Person) -> None:
    held(book)
    person.approve(total=3_000)
    lease = book.open()
    assert lease is not None
    assert book.undo(lease)
    assert book.open() is not None


def test_not_before_is_kept_after_the_approval(book: Book, person: Person) -> None:
    held(book, not_before=utc_text(book.time.wall + HOUR))
    person.approve(total=3_000)
    assert book.open() is None
    assert book.alerts() == set()
    book.time.advance(HOUR)
    assert book.open() is not None


@pytest.mark.parametrize("how", ["cancel", "deny", "too late", "withdraw"])
def test_what_leaves_the_queue_waits_no_more(book: Book, person: Person, how: str) -> None:
    if how == "withdraw":
        lease = approved_lease(book, person)
        book.permit(lease, terms=terms(3_000))
        book.lapse(lease)
        person.requeue()
        person.withdraw()
    else:
        held(book, not_after=utc_text(book.time.wall + HOUR))
        if how == "too late":
            book.time.advance(HOUR + TICK)
            book.open()
        else:
            getattr(person, how)()
    assert ("approval_required", "po-1") not in book.alerts()
    assert book.status() is (TaskStatus.STALE if how == "withdraw" else TaskStatus.FAILED)


def test_it_is_not_handed_out_over_rest_though_it_is_approved(book: Book, person: Person) -> None:
    held(book)
    person.approve(total=3_000)
    assert book.open(book.rest_request()) is None
    book.lapse(book.take())
    book.run(expire_due)
    assert "RAKUTEN_REST_LEASES" in refused(book.reclaim("po-1", book.rest_request())).message


def test_after_a_restore_no_approval_stands(book: Book, person: Person) -> None:
    held(book)
    person.approve(total=3_000)
    book.run(mark_restored, "backup.db", OPERATOR, book.new_token)
    assert book.rows("SELECT 1 FROM approvals WHERE ended_at IS NULL") == []
    person.requeue()
    assert book.task().is_held_for_approval


def test_a_repeat_that_asks_otherwise_changes_nothing(book: Book) -> None:
    held(book)
    assert book.submit(requires_approval=True).differs == ()
    assert book.submit(requires_approval=True).held_for_approval
    assert book.submit().differs == ("requires_approval",)


def test_the_upstream_is_told_that_its_order_waits(book: Book, person: Person) -> None:
    wanted = replace(book.wanted(requires_approval=True), callback_url="http://127.0.0.1:9/")
    book.run(submit, book.policy, wanted, UPSTREAM)
    assert [row["type"] for row in book.rows("SELECT type FROM callbacks")] == ["order.approval_required"]
    person.deny()
    assert [row["type"] for row in book.rows("SELECT type FROM callbacks ORDER BY row")][1:] == ["order.failed"]
