"""What must hold right before a click or a payment: what is bought, room on disk, a record, a lease that lives."""

import errno
import os
import sqlite3
from contextlib import closing
from typing import Any

import pytest
from ordergateway.v1 import orders_pb2

from tests.worker.conftest import Bench
from tests.worker.evidence.test_store import held_in
from worker.clock import SystemClock
from worker.failpoints import FailpointName
from worker.journal.claims import Claims
from worker.sites.sandbox.adapter import SandboxSite
from worker.sites.sandbox.http import SandboxHttp

NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
ORDERED = orders_pb2.ORDER_STATE_ORDERED
MIB = 1024 * 1024


class Dawdling:
    """A clock that is as far ahead as a lease lives, once one of these has happened; the permit would live longer."""

    def __init__(self, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
        bench.gateway.permit_ttl = 10 * bench.gateway.ttl
        self._bench, self._monkeypatch, self._ahead = bench, monkeypatch, 0.0
        elapsed = SystemClock.elapsed
        monkeypatch.setattr(SystemClock, "elapsed", lambda clock: elapsed(clock) + self._ahead)

    def at_the_flush_of(self, record: str) -> None:
        write = getattr(Claims, record)

        async def slowly(claims: Claims, *values: str) -> None:
            await write(claims, *values)
            self._ahead = self._bench.gateway.ttl

        self._monkeypatch.setattr(Claims, record, slowly)

    def at_the_connection_for(self, step: str) -> None:
        post = SandboxHttp.post_once

        async def slowly(http: SandboxHttp, path: str, *values: Any) -> Any:
            if step in path:
                self._ahead = self._bench.gateway.ttl
            return await post(http, path, *values)

        self._monkeypatch.setattr(SandboxHttp, "post_once", slowly)


@pytest.fixture
def dawdling(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> Dawdling:
    return Dawdling(bench, monkeypatch)


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The irreversible steps that the worker has begun on the site."""
    steps: list[str] = []

    def watch(step: str) -> None:
        act = getattr(SandboxSite, step)

        async def noted(site: SandboxSite, *values: Any) -> Any:
            steps.append(step)
            return await act(site, *values)

        monkeypatch.setattr(SandboxSite, step, noted)

    watch("submit")
    watch("pay")
    return steps


async def until_left(bench: Bench) -> list[str]:
    """Offers an order, and returns what the journal noted of it once the worker asks for the next one."""
    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker():
        await bench.gateway.called("LeaseOrders", 2)
    return [transition.event for transition in await bench.in_journal(lambda journal: journal.orders.history("po-1"))]


@pytest.mark.parametrize(
    ("after", "words", "pages"),
    [
        (FailpointName.CART_ADDED, "the cart is not what was wanted", 0),
        (FailpointName.CART_CHECKED, "the confirmation page is not what was wanted", 1),
    ],
)
async def test_what_gets_into_the_cart_meanwhile_is_seen_at_the_next_look_and_not_bought(
    bench: Bench, after: FailpointName, words: str, pages: int
) -> None:
    async def disturb(name: FailpointName) -> None:
        if name is after:
            await bench.shop.control.fill_cart({"code": "yokan-limited", "quantity": 1})

    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(disturb):
        end = await bench.gateway.end_of("po-1")
    assert end.terminal_status == NEEDS_HUMAN
    assert end.detail.startswith(words)
    assert (await bench.shop.control.counters())["requests"].get("confirm", 0) == pages
    assert bench.gateway.requests("RequestSubmitPermit") == []


async def test_a_lease_that_ends_while_the_click_record_is_flushed_begins_no_click(
    bench: Bench, dawdling: Dawdling, begun: list[str]
) -> None:
    dawdling.at_the_flush_of("record_click")
    noted = await until_left(bench)
    assert noted[-3:] == ["click recorded", "not clicked", "lease lost"]
    assert begun == []
    assert bench.gateway.ended == {}


async def test_a_lease_that_ends_while_the_connection_opens_makes_no_click(
    bench: Bench, dawdling: Dawdling, begun: list[str]
) -> None:
    dawdling.at_the_connection_for("/order/")
    noted = await until_left(bench)
    assert noted[-3:] == ["click recorded", "not clicked", "lease lost"]
    assert begun == ["submit"]
    assert (await bench.shop.control.counters())["submits_received"] == 0
    assert bench.gateway.ended == {}


async def test_a_lease_that_ends_while_the_payment_record_is_flushed_begins_no_payment(
    bench: Bench, dawdling: Dawdling, begun: list[str]
) -> None:
    dawdling.at_the_flush_of("record_payment")
    noted = await until_left(bench)
    assert noted[-2:] == ["payment recorded", "lease lost"]
    assert begun == ["submit"]
    assert bench.gateway.ended == {}


async def test_a_lease_that_ends_while_the_connection_opens_makes_no_payment(
    bench: Bench, dawdling: Dawdling, begun: list[str]
) -> None:
    dawdling.at_the_connection_for("/payment")
    noted = await until_left(bench)
    assert noted[-2:] == ["payment recorded", "lease lost"]
    assert begun == ["submit", "pay"]
    assert (await bench.shop.control.counters())["requests"].get("pay", 0) == 0
    assert bench.gateway.ended == {}


async def test_a_payment_that_is_on_record_is_not_made_again(bench: Bench) -> None:
    async def record(name: FailpointName) -> None:
        if name is FailpointName.ORDERED_REPORTED:
            with closing(sqlite3.connect(bench.folder / "trading.db")) as journal, journal:
                journal.execute("INSERT INTO payments SELECT task_id, site_order_id, updated_at FROM orders")

    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(record):
        end = await bench.gateway.end_of("po-1")
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, ORDERED)
    assert "on record already; it was not paid again" in end.detail
    counters = await bench.shop.control.counters()
    assert (counters["orders_placed"], counters["requests"].get("pay", 0), counters["payments_made"]) == (1, 0, 0)


async def test_on_a_full_disk_no_permit_is_asked_and_no_click_made(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int, _offset: int, size: int) -> None:
        assert size >= MIB
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def fill(name: FailpointName) -> None:
        if name is FailpointName.CONFIRMED:
            monkeypatch.setattr(os, "posix_fallocate", full)

    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(fill):
        end = await bench.gateway.end_of("po-1")
    assert end.terminal_status == NEEDS_HUMAN
    assert "no disk space could be reserved" in end.detail
    assert bench.gateway.requests("RequestSubmitPermit") == []
    assert (await bench.shop.control.counters())["submits_received"] == 0
    assert not await bench.in_journal(lambda journal: journal.claims.has_click("po-1"))


async def test_room_is_held_until_after_the_click_and_then_there_for_what_it_brings(bench: Bench) -> None:
    held: dict[FailpointName, int] = {}

    async def look(name: FailpointName) -> None:
        held[name] = sum(held_in(bench.folder)) // MIB

    bench.gateway.offer("po-1", bench.intent())
    async with bench.worker(look):
        await bench.gateway.end_of("po-1")
    assert held[FailpointName.PERMITTED] >= 8
    assert held[FailpointName.CLICKED] == held[FailpointName.PERMITTED]
    assert held[FailpointName.ORDER_JOURNALLED] == 0
