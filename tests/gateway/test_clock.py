"""Time (docs/specification.md#time): steps of the wall clock, restarts, other boots, another scope."""

import time as system
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.clock import system_time
from gateway.domain.instant import parse_utc
from gateway.domain.leases import Permit, Renewed
from gateway.domain.models import LeaseScope
from gateway.domain.refusals import Reason
from gateway.domain.states import TaskStatus
from gateway.orders.settle import settled_us
from gateway.store import leases
from tests.gateway.support.book import POLICY, Book, reason
from tests.gateway.support.manual_time import TICK, ManualTime

pytestmark = pytest.mark.sqlite

HOUR = timedelta(hours=1)
TTL = timedelta(seconds=300)
STEPS = pytest.mark.parametrize("step", [HOUR, -HOUR], ids=["forward", "back"])


@STEPS
def test_a_step_of_the_wall_clock_does_not_expire_a_live_lease(book: Book, step: timedelta) -> None:
    lease = book.take()
    book.time.advance(TTL - TICK)
    book.time.step_wall(step)
    assert isinstance(book.renew(lease), Renewed)


@STEPS
def test_a_step_of_the_wall_clock_does_not_revive_a_dead_lease(book: Book, step: timedelta) -> None:
    lease = book.take()
    book.time.step_wall(step)
    book.time.advance(TTL)
    assert reason(book.renew(lease)) is Reason.LEASE_INVALID
    book.time.step_wall(-2 * step)
    assert reason(book.renew(lease)) is Reason.LEASE_INVALID
    assert book.status() is TaskStatus.STALE


@STEPS
def test_a_step_of_the_wall_clock_moves_no_permit(book: Book, step: timedelta) -> None:
    lease = book.take()
    book.permit(lease)
    book.time.step_wall(step)
    book.time.advance(10)
    permit = book.permit(lease)
    assert isinstance(permit, Permit)
    assert permit.valid_for == timedelta(seconds=20)


def test_times_told_never_go_back(book: Book) -> None:
    lease = book.take()
    for step in (-HOUR, HOUR / 2, -HOUR, 2 * HOUR):
        book.time.step_wall(step)
        book.time.advance(1)
        book.renew(lease)
    times = [row["occurred_at"] for row in book.rows("SELECT occurred_at FROM events ORDER BY sequence")]
    assert times == sorted(times)
    assert {len(at) for at in times} == {len("2026-11-29T15:58:22.123456Z")}


@pytest.mark.parametrize("crash", [False, True])
@STEPS
def test_a_restart_in_the_same_boot_goes_on_exactly(book: Book, step: timedelta, *, crash: bool) -> None:
    lease = book.take()
    book.time.advance(100)
    book.time.step_wall(step)
    assert book.restart(crash=crash).kept == 1
    book.time.advance(TTL - timedelta(seconds=100) - TICK)
    assert isinstance(book.renew(lease), Renewed)
    assert book.restart(crash=crash).kept == 1
    book.time.advance(TTL)
    assert reason(book.renew(lease)) is Reason.LEASE_INVALID


def test_another_boot_goes_on_by_the_wall_clock(book: Book) -> None:
    lease = book.take()
    book.time.advance(100)
    book.run(book.clock.save)
    book.time.reboot(down=timedelta(seconds=100))
    assert book.restart(crash=True).kept == 1
    book.time.advance(timedelta(seconds=100) - TICK)
    book.run(lambda tx, _: None)
    assert isinstance(book.renew(lease), Renewed)


def test_another_boot_ends_at_the_same_tick(book: Book) -> None:
    lease = book.take()
    book.time.advance(100)
    book.run(book.clock.save)
    book.time.reboot(down=timedelta(seconds=100))
    book.restart(crash=True)
    book.time.advance(100)
    assert reason(book.renew(lease)) is Reason.LEASE_INVALID


def test_another_boot_after_the_lease_has_run_out_by_the_wall_clock_turns_it_stale(book: Book) -> None:
    book.take()
    book.time.reboot(down=TTL)
    assert book.restart(crash=True).stale == 1
    assert book.status() is TaskStatus.STALE


def test_another_boot_with_a_wall_clock_that_went_back_turns_it_stale(book: Book) -> None:
    book.take()
    book.time.advance(10)
    book.run(book.clock.save)
    book.time.reboot(down=-timedelta(seconds=11))
    assert book.restart(crash=True).stale == 1
    assert book.status() is TaskStatus.STALE


def test_after_a_crash_and_another_boot_no_time_is_lost_that_leases_had_seen(book: Book) -> None:
    book.run(book.clock.save)
    book.time.advance(4)
    lease = book.take()
    book.time.reboot(down=timedelta(seconds=20))
    book.restart(crash=True)
    assert book.lease_age(lease) >= timedelta(0)


def test_a_permit_is_not_longer_after_another_boot(book: Book) -> None:
    book.run(book.clock.save)
    book.time.advance(4)
    lease = book.take()
    book.permit(lease)
    book.time.reboot(down=timedelta(seconds=20))
    book.restart(crash=True)
    outcome = book.permit(lease)
    assert reason(outcome) is Reason.PERMIT_EXPIRED


def test_the_settle_time_is_not_shorter_after_another_boot(book: Book) -> None:
    lease = book.take()
    book.permit(lease)
    book.run(book.clock.save)
    book.time.reboot(down=2 * TTL)
    book.restart(crash=True)
    before = book.clock.now().elapsed_us
    (ended,) = book.rows("SELECT ended_us, permit_expires_us FROM leases")
    assert max(ended.values()) >= before


def test_nothing_is_settled_earlier_because_another_permit_had_to_be_over(tmp_path: Path, time: ManualTime) -> None:
    with Book(tmp_path / "by-site.db", time, replace(POLICY, scope=LeaseScope.SITE)) as book:
        first = book.take("po-1")
        book.permit(first)
        book.lapse(first)
        book.submit("po-2", "sandbox")
        second = book.open(book.request("w2", sites=("sandbox",)))
        assert second is not None
        book.renew(second)
        book.run(book.clock.save)
        book.permit(second)
        left = settled_in(book)
        book.time.reboot(down=timedelta(seconds=1))
        book.restart(crash=True)
        assert book.clock.moved_ahead_us > 1_000_000
        assert settled_in(book) >= left - timedelta(seconds=1)


def settled_in(book: Book) -> timedelta:
    """How long it takes until po-1 is settled."""
    (ended,) = book.run(lambda tx, _: leases.of_task(tx, "po-1"))
    settled = settled_us(book.policy, [ended])
    assert settled is not None
    return timedelta(microseconds=settled - book.clock.now().elapsed_us)


def test_the_expiry_told_to_people_is_the_wall_clock_s(book: Book) -> None:
    lease = book.take()
    assert parse_utc(book.task(lease.task_id).lease_expires_at or "") - book.time.wall == TTL


# Another scope.


@pytest.fixture
def two_sites(tmp_path: Path, time: ManualTime) -> Iterator[Book]:
    """Two tasks in execution, one a site."""
    with Book(tmp_path / "by-site.db", time, replace(POLICY, scope=LeaseScope.SITE)) as book:
        for task_id, site in (("po-1", "rakuten"), ("po-2", "sandbox")):
            book.submit(task_id, site)
            assert book.open(book.request(f"w-{site}")) is not None
        yield book


def slots(book: Book) -> dict[str, str]:
    return {row["task_id"]: row["slot"] for row in book.rows("SELECT task_id, slot FROM tasks WHERE slot IS NOT NULL")}


def test_from_global_to_site_the_active_task_moves_to_its_site_s_slot(book: Book) -> None:
    book.take("po-1")
    assert slots(book) == {"po-1": "global"}
    book.restart(replace(POLICY, scope=LeaseScope.SITE))
    assert slots(book) == {"po-1": "site:rakuten"}
    book.submit("po-2", "rakuten")
    book.submit("po-3", "sandbox")
    lease = book.open(book.request("w2"))
    assert lease is not None
    assert lease.task_id == "po-3"


def test_from_site_to_global_both_stay_and_no_third_is_leased_until_both_have_ended(two_sites: Book) -> None:
    book = two_sites
    assert book.restart(POLICY).kept == 2
    book.submit("po-3")
    for task_id in ("po-1", "po-2"):
        assert book.open(book.request("w3")) is None
        book.connection.execute(
            "UPDATE leases SET ended_at = started_at, ended_us = started_us WHERE task_id = ?", (task_id,)
        )
        book.connection.execute(
            "UPDATE tasks SET status = 'failed', slot = NULL, lease_owner = NULL, lease_expires_at = NULL,"
            " lease_deadline_us = NULL WHERE task_id = ?",
            (task_id,),
        )
    lease = book.open(book.request("w3"))
    assert lease is not None
    assert lease.task_id == "po-3"


def test_back_and_forth_changes_nothing(two_sites: Book) -> None:
    before = slots(two_sites)
    two_sites.restart(POLICY)
    two_sites.restart(replace(POLICY, scope=LeaseScope.SITE))
    assert slots(two_sites) == before


def test_the_boot_time_clock_is_asked_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "CLOCK_BOOTTIME", 7, raising=False)
    monkeypatch.setattr(system, "clock_gettime_ns", {7: 5_000_000_000, system.CLOCK_MONOTONIC: 10_000}.__getitem__)
    monkeypatch.setattr(system, "monotonic_ns", lambda: 10_000)
    assert system_time().boot_us() == 5_000_000


def test_elsewhere_the_monotonic_clock_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(system, "CLOCK_BOOTTIME", raising=False)
    monkeypatch.setattr(system, "monotonic_ns", lambda: 10_000)
    assert system_time().boot_us() == 10
