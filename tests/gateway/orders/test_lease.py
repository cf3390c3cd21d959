"""Taking and holding: queue order, slots, repeats, undo, reclaim, expiry at use.

The rule: docs/specification.md#taking-an-order.
"""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.domain.leases import Command, Lease, Renewed
from gateway.domain.models import LeaseScope
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import OrderState, TaskStatus
from gateway.orders.expire import expire
from gateway.orders.lease import reclaim
from tests.gateway.support.book import OTHER_JOURNAL, POLICY, Book, reason, refused
from tests.gateway.support.manual_time import TICK, ManualTime

ACKNOWLEDGE = timedelta(seconds=30)
TTL = timedelta(seconds=300)


@pytest.fixture
def by_site(tmp_path: Path, time: ManualTime) -> Book:
    return Book(tmp_path / "by-site.db", time, replace(POLICY, scope=LeaseScope.SITE))


def test_the_oldest_task_of_any_site_comes_first(book: Book) -> None:
    for number, site in enumerate(("sandbox", "rakuten", "sandbox")):
        book.submit(f"po-{number}", site)
    for number in range(3):
        lease = book.open()
        assert lease is not None
        assert lease.task_id == f"po-{number}"
        book.renew(lease)
        book.report(lease, OrderState.PAID, terminal=True)


def test_a_worker_gets_only_the_sites_it_can_order_on(book: Book) -> None:
    book.submit("po-1", "sandbox")
    assert book.open(book.request(sites=("rakuten",))) is None
    assert book.open(book.request(sites=("sandbox",))) is not None


@pytest.mark.parametrize(("site", "gets"), [("", None), ("rakuten", "po-2"), ("sandbox", "po-1")])
def test_what_is_paused_is_not_leased(book: Book, site: str, gets: str | None) -> None:
    book.submit("po-1", "rakuten")
    book.submit("po-2", "sandbox")
    book.pause(site)
    lease = book.open()
    assert (lease and lease.task_id) == gets


def test_by_site_each_site_has_one_task_in_execution(by_site: Book) -> None:
    with by_site as book:
        for task_id, site in (("po-1", "rakuten"), ("po-2", "rakuten"), ("po-3", "sandbox")):
            book.submit(task_id, site)
        first, second, third = (book.open(book.request(f"w{number}")) for number in range(3))
        assert [lease and lease.task_id for lease in (first, second, third)] == ["po-1", "po-3", None]


def test_after_a_change_to_the_global_scope_no_task_is_taken_beside_one_that_goes_on(by_site: Book) -> None:
    """Two tasks were in execution then; one slot is left for both, and the end of its holder does not free it."""
    with by_site as book:
        book.submit("po-1", "rakuten")
        book.submit("po-2", "sandbox")
        first, second = (book.open(book.request(f"w{number}")) for number in (1, 2))
        assert first is not None
        assert second is not None
        for lease in (first, second):
            book.renew(lease)
        book.restart(POLICY)
        for task_id in ("po-3", "po-4"):
            book.submit(task_id, "rakuten")
        book.report(first, OrderState.PAID, terminal=True)
        assert book.open(book.request("w3")) is None
        book.run(expire, book.task("po-2"))
        gone = book.open(book.request("w3"))
        assert gone is not None
        refusal = book.reclaim("po-2", book.request("w4"))
        assert isinstance(refusal, Refusal)
        assert (refusal.reason, refusal.retry_after) == (Reason.ANOTHER_TASK_ACTIVE, timedelta(seconds=5))
        assert "task po-3 is in execution; reclaim po-2 again" in refusal.message


def test_a_reclaim_carries_who_asked_and_why_into_the_history(book: Book) -> None:
    lease = book.take()
    book.lapse(lease)
    again = book.run(
        reclaim, book.policy, "po-1", book.request(session="session-of-reclaim"), book.new_token(),
        Command("ann@shop-pc", "the power came back"),
    )  # fmt: skip
    assert isinstance(again, Lease)
    refusal = book.run(
        reclaim, book.policy, "po-1", book.request("w2"), book.new_token(), Command("bob", "it hangs")
    )  # fmt: skip
    assert isinstance(refusal, Refusal)
    taken, kept = book.rows("SELECT actor, worker_id, reason, details_json FROM events WHERE kind LIKE 'reclaim%'")
    assert (taken["actor"], taken["worker_id"], taken["reason"]) == ("worker", "w1", "the power came back")
    assert json.loads(taken["details_json"])["requested_by"] == "ann@shop-pc"
    told = json.loads(kept["details_json"])
    assert (told["requested_by"], told["asked_because"]) == ("bob", "it hangs")


def test_an_unacknowledged_lease_lives_until_one_tick_before_its_time(book: Book) -> None:
    lease = book.take(acknowledge=False)
    book.time.advance(ACKNOWLEDGE - TICK)
    assert isinstance(book.renew(lease), Renewed)
    book.time.advance(TTL - TICK)
    assert isinstance(book.renew(lease), Renewed)
    book.time.advance(TTL)
    assert reason(book.renew(lease)) is Reason.LEASE_INVALID
    assert book.status() is TaskStatus.STALE


def test_an_unacknowledged_lease_is_gone_at_its_time(book: Book) -> None:
    lease = book.take(acknowledge=False)
    book.time.advance(ACKNOWLEDGE)
    assert reason(book.renew(lease)) is Reason.LEASE_INVALID
    assert book.status() is TaskStatus.STALE
    assert ("task_stale", "po-1") in book.alerts()


def test_expiry_at_use_happens_once_and_a_refused_renewal_is_in_the_history(book: Book) -> None:
    lease = book.take()
    book.lapse(lease)
    for _ in range(2):
        assert reason(book.renew(lease)) is Reason.LEASE_INVALID
    assert book.events() == ["submit", "lease", "acknowledge", "expire", "renew_refused"]


def test_a_lease_request_turns_an_expired_task_stale_before_it_looks_for_a_slot(book: Book) -> None:
    book.lapse(book.take("po-1"))
    book.submit("po-2")
    lease = book.open(book.request("w2"))
    assert lease is not None
    assert lease.task_id == "po-2"
    assert book.status("po-1") is TaskStatus.STALE


def test_a_renewal_tells_the_age_of_the_lease(book: Book) -> None:
    lease = book.take()
    book.time.advance(7)
    assert book.lease_age(lease) == timedelta(seconds=7)


@pytest.mark.parametrize("field", [{"worker_id": "w2"}, {"token": "x" * 43}])
def test_a_worker_s_name_without_the_token_holds_nothing_nor_the_token_without_the_name(
    book: Book, field: dict[str, str]
) -> None:
    lease = book.take()
    for call in (book.renew, book.permit):
        assert reason(call(lease, **field)) is Reason.LEASE_INVALID  # type: ignore[operator]
    assert refused(book.report(lease, holder=book.holder(lease, **field))).recorded_late
    assert book.status() is TaskStatus.LEASED
    assert isinstance(book.renew(lease), Renewed)


def test_a_former_token_holds_nothing_any_more(book: Book) -> None:
    first = book.take()
    second = book.retake(first)
    assert reason(book.renew(first)) is Reason.LEASE_INVALID
    assert isinstance(book.renew(second), Renewed)


def test_a_task_never_leased_refuses_a_renewal_as_lease_invalid(book: Book) -> None:
    lease = book.take()
    book.submit("po-2")
    assert reason(book.renew(lease, task_id="po-2")) is Reason.LEASE_INVALID
    assert reason(book.renew(lease, task_id="po-9")) is Reason.TASK_NOT_FOUND


# The lost answer.


def test_the_same_session_gets_its_unacknowledged_lease_again_with_its_token(book: Book) -> None:
    lease = book.take(acknowledge=False)
    book.time.advance(ACKNOWLEDGE - TICK)
    again = book.open()
    assert again == lease
    assert book.task().lease_count == 1


def test_also_while_dispatch_is_paused(book: Book) -> None:
    lease = book.take(acknowledge=False)
    book.pause()
    assert book.open() == lease


@pytest.mark.parametrize(
    "other",
    [{"session": "another-session-1"}, {"worker": "w2", "session": "session-of-w10000"}, {"journal": OTHER_JOURNAL}],
)
def test_anyone_else_gets_nothing(book: Book, other: dict[str, str]) -> None:
    book.take(acknowledge=False)
    assert book.request().session_id == "session-of-w10000"
    assert book.open(book.request(**other)) is None


def test_once_acknowledged_the_same_session_gets_nothing(book: Book) -> None:
    book.take()
    assert book.open() is None


def test_once_lapsed_the_same_session_gets_nothing_and_the_task_is_stale(book: Book) -> None:
    book.take(acknowledge=False)
    book.time.advance(ACKNOWLEDGE)
    assert book.open() is None
    assert book.status() is TaskStatus.STALE


def test_a_repeated_reclaim_gets_the_same_lease(book: Book) -> None:
    book.lapse(book.take())
    lease = book.reclaim()
    assert isinstance(lease, Lease)
    assert book.reclaim() == lease
    assert reason(book.reclaim(request=book.request("w2"))) is Reason.STATUS_CONFLICT
    book.renew(lease)
    assert reason(book.reclaim()) is Reason.STATUS_CONFLICT


def test_a_repeated_renewal_answers_the_same_and_acknowledges_once(book: Book) -> None:
    lease = book.take(acknowledge=False)
    assert book.renew(lease) == book.renew(lease)
    assert book.events() == ["submit", "lease", "acknowledge", "renew"]


# Undo.


def test_an_undo_puts_the_task_back_as_it_was(book: Book) -> None:
    book.submit("po-0")
    before = book.rows("SELECT * FROM tasks")
    lease = book.take("po-0", acknowledge=False)
    assert book.undo(lease)
    assert book.rows("SELECT * FROM tasks") == before
    again = book.take("po-0")
    assert again.lease_count == 1


def test_an_undo_needs_the_token_and_happens_once(book: Book) -> None:
    lease = book.take(acknowledge=False)
    assert not book.undo(replace(lease, token=book.new_token()))
    assert book.undo(lease)
    assert not book.undo(lease)
    assert book.task().lease_count == 0


def test_a_lease_given_twice_is_undone_only_when_both_answers_come_back(book: Book) -> None:
    lease = book.take(acknowledge=False)
    assert book.open() == lease
    assert not book.undo(lease)
    assert book.status() is TaskStatus.LEASED
    assert book.undo(lease)
    assert book.status() is TaskStatus.QUEUED


def test_an_acknowledged_lease_is_not_undone(book: Book) -> None:
    lease = book.take()
    assert not book.undo(lease)
    assert book.status() is TaskStatus.LEASED


def test_an_undo_of_a_recovered_lease_keeps_what_earlier_ones_may_have_done(book: Book) -> None:
    first = book.take()
    book.permit(first)
    book.lapse(first)
    again = book.reclaim()
    assert isinstance(again, Lease)
    assert book.undo(again)
    assert book.task().may_have_clicked
    assert book.task().lease_count == 1


# Reclaim.


def test_a_reclaim_waits_for_a_free_slot_and_is_allowed_while_paused(book: Book) -> None:
    book.lapse(book.take("po-1"))
    other = book.take("po-2", request=book.request("w2"))
    refusal = refused(book.reclaim("po-1"))
    assert (refusal.reason, refusal.current_status) == (Reason.ANOTHER_TASK_ACTIVE, TaskStatus.STALE)
    assert refusal.retry_after is not None
    book.report(other, OrderState.PAID, terminal=True)
    book.pause()
    assert isinstance(book.reclaim("po-1"), Lease)
    assert ("task_stale", "po-1") not in book.alerts()


def test_a_reclaim_judges_expiry_by_itself(book: Book) -> None:
    lease = book.take()
    book.time.advance(TTL - TICK)
    assert reason(book.reclaim(request=book.request("w2"))) is Reason.STATUS_CONFLICT
    book.time.advance(TICK)
    again = book.reclaim(request=book.request("w2"))
    assert isinstance(again, Lease)
    assert (again.lease_count, again.token == lease.token) == (2, False)


def test_an_unknown_task_can_not_be_reclaimed(book: Book) -> None:
    assert reason(book.reclaim("po-9")) is Reason.TASK_NOT_FOUND
