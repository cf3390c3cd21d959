"""Accounts (docs/specification.md#accounts): what a worker may be given, and which slot a task occupies."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from common.target import Target
from gateway.domain.leases import Lease, Renewed, Via
from gateway.domain.models import LeaseScope
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, TaskStatus
from gateway.operations.alerts import watch_queue
from gateway.orders.read import health
from tests.gateway.support.book import POLICY, Book, reason, refused
from tests.gateway.support.manual_time import ManualTime

S = OrderState


@pytest.fixture
def by_account(tmp_path: Path, time: ManualTime) -> Iterator[Book]:
    with Book(tmp_path / "by-account.db", time, replace(POLICY, scope=LeaseScope.ACCOUNT)) as book:
        yield book


def lanes(book: Book) -> dict[str, tuple[str | None, str | None]]:
    """By target: the id of the oldest queued task and of the one in execution, as the database keeps them."""
    ids = {row["row"]: row["task_id"] for row in book.rows("SELECT row, task_id FROM tasks")}
    return {
        str(Target(row["site"], row["account"])): (ids.get(row["head_row"]), ids.get(row["active_row"]))
        for row in book.rows("SELECT * FROM lanes")
        if row["head_row"] is not None or row["active_row"] is not None
    }


@pytest.mark.parametrize("scope", LeaseScope)
def test_a_worker_is_given_its_own_targets_alone_whatever_the_scope(
    tmp_path: Path, time: ManualTime, scope: LeaseScope
) -> None:
    with Book(tmp_path / "scope.db", time, replace(POLICY, scope=scope)) as book:
        book.submit("of-a", account="a")
        book.submit("of-b", site="sandbox", account="b")
        for accounts in ((), ("",), ("c", "")):
            assert book.open(book.request("w9", accounts=accounts)) is None
        assert book.open(book.request("w9", sites=("sandbox",), accounts=("a",))) is None
        lease = book.open(book.request("w1", accounts=("b",)))
        assert lease is not None
        assert (lease.task_id, lease.account) == ("of-b", "b")


def test_the_oldest_of_all_of_its_accounts_comes_first(by_account: Book) -> None:
    for number, account in enumerate(("b", "a", "", "b")):
        by_account.submit(f"po-{number}", account=account)
    request = by_account.request(accounts=("a", "", "b"))
    given = []
    for number in range(3):
        lease = by_account.open(replace(request, session_id=f"session-number-{number:04}"))
        assert lease is not None
        given.append(lease.task_id)
    assert given == ["po-0", "po-1", "po-2"]


@pytest.mark.parametrize(
    ("scope", "given"),
    [
        (LeaseScope.GLOBAL, ["rakuten/a"]),
        (LeaseScope.SITE, ["rakuten/a", "sandbox/a"]),
        (LeaseScope.ACCOUNT, ["rakuten/a", "rakuten/b", "rakuten", "sandbox/a"]),
    ],
)
def test_a_slot_covers_what_its_scope_says(
    tmp_path: Path, time: ManualTime, scope: LeaseScope, given: list[str]
) -> None:
    with Book(tmp_path / "slots.db", time, replace(POLICY, scope=scope)) as book:
        targets = [("rakuten", "a"), ("rakuten", "a"), ("rakuten", "b"), ("rakuten", ""), ("sandbox", "a")]
        for number, (site, account) in enumerate(targets):
            book.submit(f"po-{number}", site, account=account)
        leased = [
            lease
            for number in range(len(targets))
            if (lease := book.open(book.request(session=f"session-number-{number:04}", accounts=("a", "b", ""))))
        ]
        assert [str(Target(lease.site, lease.account)) for lease in leased] == given
        assert [task["slot"] for task in book.rows("SELECT slot FROM tasks WHERE slot IS NOT NULL ORDER BY row")] == [
            book.policy.slot(Target(lease.site, lease.account)) for lease in leased
        ]


def test_a_task_of_another_account_is_not_reclaimed(by_account: Book) -> None:
    by_account.submit("po-1", account="a")
    lease = by_account.take("po-1", request=by_account.request(accounts=("a",)))
    by_account.lapse(lease)
    for accounts in ((), ("",), ("b",)):
        told = refused(by_account.reclaim(request=by_account.request("w2", accounts=accounts or ("",))))
        assert (told.reason, by_account.status()) == (Reason.STATUS_CONFLICT, TaskStatus.STALE)
        assert "account a of rakuten" in told.message
    # The same refusal to the same identity stands in the history once.
    assert by_account.events().count("reclaim_refused") == 1
    assert isinstance(by_account.reclaim(request=by_account.request("w2", accounts=("b", "a"))), Lease)


def test_a_lease_is_repeated_to_the_stream_that_serves_its_account(by_account: Book) -> None:
    by_account.submit("po-1", account="a")
    first = by_account.open(by_account.request(accounts=("a",)))
    assert first is not None
    assert by_account.open(by_account.request(accounts=("b",))) is None
    again = by_account.open(by_account.request(accounts=("b", "a")))
    assert again is not None
    assert again.token == first.token


def test_orders_of_another_account_are_not_left_out_of_a_look_and_leave_it_complete(by_account: Book) -> None:
    of_a = by_account.request("w1", accounts=("a",))
    by_account.submit("told", account="a")
    lease = by_account.take("told", request=of_a)
    by_account.report(lease, S.PAID, site_order_id="A-1", terminal=True)
    by_account.submit("possible", account="b")
    possible = by_account.take("possible", request=by_account.request("w2", accounts=("b",)))
    by_account.permit(possible)
    by_account.submit("mine", account="a")
    mine = by_account.take("mine", request=of_a)
    others = by_account.renew(mine, with_others=True)
    assert isinstance(others, Renewed)
    assert others.others is not None
    assert (others.others.site_order_ids, others.others.incomplete) == (("A-1",), False)
    by_account.submit("beside", account="b")
    by_account.report(possible, S.CREATED, terminal=True)
    beside = by_account.take("beside", request=by_account.request("w2", accounts=("b",)))
    others = by_account.renew(beside, with_others=True)
    assert isinstance(others, Renewed)
    assert others.others is not None
    assert (others.others.site_order_ids, others.others.incomplete) == ((), True)


def test_one_number_on_tasks_of_two_accounts_alerts(by_account: Book) -> None:
    for account in ("a", "b"):
        by_account.submit(f"of-{account}", account=account)
        lease = by_account.take(f"of-{account}", request=by_account.request(f"w-{account}", accounts=(account,)))
        by_account.report(lease, S.PAID, site_order_id="A-1", terminal=True)
    assert by_account.alerts() == {("site_order_id_conflict", "rakuten/A-1")}


def test_a_lane_is_kept_through_every_way_a_task_moves(by_account: Book) -> None:
    of_a = by_account.request("w1", accounts=("a",))
    for task_id in ("po-1", "po-2", "po-3"):
        by_account.submit(task_id, account="a")
    assert lanes(by_account) == {"rakuten/a": ("po-1", None)}
    first = by_account.open(of_a)
    assert first is not None
    assert lanes(by_account) == {"rakuten/a": ("po-2", "po-1")}
    assert by_account.undo(first)
    assert lanes(by_account) == {"rakuten/a": ("po-1", None)}
    lease = by_account.take("po-1", request=of_a)
    by_account.report(lease)
    assert lanes(by_account) == {"rakuten/a": ("po-2", "po-1")}
    by_account.lapse(lease)
    assert by_account.open(replace(of_a, session_id="session-afterwards-1")) is not None
    assert lanes(by_account) == {"rakuten/a": ("po-3", "po-2")}
    by_account.cancel("po-3")
    assert lanes(by_account) == {"rakuten/a": (None, "po-2")}


@pytest.mark.parametrize("narrow", [LeaseScope.GLOBAL, LeaseScope.SITE])
def test_a_narrower_scope_leases_nothing_until_all_within_its_slot_have_ended(
    by_account: Book, narrow: LeaseScope
) -> None:
    held = []
    for account in ("a", "b"):
        by_account.submit(f"of-{account}", account=account)
        held.append(by_account.take(f"of-{account}", request=by_account.request(f"w-{account}", accounts=(account,))))
    by_account.submit("next")
    by_account.restart(replace(by_account.policy, scope=narrow))
    for lease in held:
        assert by_account.open() is None
        by_account.report(lease, S.PAID, terminal=True)
    assert by_account.open() is not None


def test_a_task_that_no_worker_serves_is_told_apart_from_one_that_waits_for_a_busy_one(by_account: Book) -> None:
    by_account.open(by_account.request("w1", accounts=("", "a")))
    by_account.open(replace(by_account.rest_request("w2"), sites=("sandbox",), accounts=("b",)))
    by_account.submit("served", account="a")
    by_account.submit("on-the-other-site", account="b")
    by_account.submit("served-over-rest", "sandbox", account="b")
    by_account.time.advance(POLICY.task_unclaimed_after + timedelta(seconds=1))
    by_account.open(by_account.request("w1", accounts=("", "c")))
    by_account.open(replace(by_account.rest_request("w2"), sites=("sandbox",), accounts=("d",)))
    by_account.open(by_account.request("w3", sites=("rakuten",), accounts=("e", "a")))
    told = by_account.run(health, by_account.policy)
    assert {task.task_id: task.unserved for task in told.stale_queued_tasks} == {
        "on-the-other-site": True,
        "served-over-rest": True,
    }
    assert {worker.worker_id: (worker.sites, worker.accounts) for worker in told.workers} == {
        "w1": (("rakuten", "sandbox"), ("", "c")),
        "w2": (("sandbox",), ("d",)),
        "w3": (("rakuten",), ("e", "a")),
    }
    by_account.run(watch_queue, by_account.policy)
    (message,) = [
        row["message"] for row in by_account.rows("SELECT message FROM alerts WHERE task_id = 'on-the-other-site'")
    ]
    assert "no worker serves rakuten/b" in message


def test_over_rest_without_a_token_the_account_is_the_same_rule(by_account: Book) -> None:
    by_account.submit("po-1", account="a")
    assert by_account.open(by_account.rest_request()) is None
    lease = by_account.open(replace(by_account.rest_request(), accounts=("a",)))
    assert lease is not None
    assert by_account.rows("SELECT via FROM leases") == [{"via": Via.REST.value}]
    assert reason(by_account.reclaim(request=by_account.rest_request())) is Reason.STATUS_CONFLICT
