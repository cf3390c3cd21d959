"""What a hostile shop may answer to the click and to the payment, and what the worker makes of it.

The order list shows an order only after ten minutes, as the real one does: a number that is lost here stays lost.
"""

import asyncio
import json
import shutil
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from ordergateway.v1 import order_leases_pb2 as pb
from ordergateway.v1 import orders_pb2

from tests.hostile.shop.tampering_shop import Answer, Tamper, TamperingShop
from tests.hostile.shop.test_burning_pages import NESTED
from tests.worker.conftest import Bench
from worker.journal.orders import Orders
from worker.journal.records import JournalEntry
from worker.orders.state import OrderState

NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
SUCCEEDED = orders_pb2.TASK_STATUS_SUCCEEDED
ORDERED = orders_pb2.ORDER_STATE_ORDERED

SUBMIT = ("POST", "/order/submit")
THANKS = ("GET", "/order/thanks")
PAYMENT = ("GET", "/payment")
PAY = ("POST", "/payment")
RESULT = ("GET", "/payment/result")

STEP_SECONDS = 10
"""When a step that hangs is given up; one that does not hang is far below it on a busy machine too."""

REFUSAL = '<p class="refusal" role="alert">決済エラー</p>'


async def drip() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n"
    while True:
        yield b"<"
        await asyncio.sleep(0.02)


async def hang() -> AsyncIterator[bytes]:
    await asyncio.Event().wait()
    yield b""


def body(content: bytes) -> Tamper:
    return lambda answer: replace(answer, body=content)


def status(code: int) -> Tamper:
    return lambda answer: replace(answer, status=code)


def edit(old: str, new: str) -> Tamper:
    return lambda answer: answer.edit(old, new)


def dripping_redirect(answer: Answer) -> AsyncIterator[bytes]:
    async def pieces() -> AsyncIterator[bytes]:
        yield answer.raw().replace(b"content-length: 0\r\n", b"").removesuffix(b"\r\n\r\n") + b"\r\n\r\n"
        while True:
            yield b"<"
            await asyncio.sleep(0.02)

    return pieces()


def other_number(answer: Answer) -> Answer:
    location = dict(answer.headers)["location"]
    return answer.with_header("location", location[:-1] + ("1" if location[-1] != "1" else "2"))


@dataclass(frozen=True)
class Row:
    """`words`: part of the end's detail; empty: the order is paid. The number is told in any case."""

    name: str
    tampers: dict[tuple[str, str], Tamper]
    words: str = ""


ROWS = [
    # The answer's body is nobody's to read: its head says where it leads.
    Row("no UTF-8", {SUBMIT: body(b"\xff\xfe\xe9")}),
    Row("a coding", {SUBMIT: lambda answer: answer.with_header("content-encoding", "gzip")}),
    Row("too large", {SUBMIT: body(b"x" * (5 << 20))}),
    Row("nested", {SUBMIT: body(NESTED.encode())}),
    Row("not read alike", {SUBMIT: body(b"<noembed>")}),
    Row("a dripping body", {SUBMIT: dripping_redirect}),
    # The thank-you page is evidence.
    Row("thanks: drips", {THANKS: lambda _answer: drip()}),
    Row("thanks: hangs", {THANKS: lambda _answer: hang()}),
    Row("thanks: burns", {THANKS: body(NESTED.encode())}),
    Row("thanks: too large", {THANKS: body(b"x" * (5 << 20))}),
    Row("thanks: fails", {THANKS: status(500)}),
    # What speaks against the order
    Row("refuses", {SUBMIT: body(REFUSAL.encode())}, "refuses: 決済エラー; it is not paid"),
    Row("sent again", {SUBMIT: status(308)}, "answers HTTP 308; it is not paid"),
    Row("a failure that leads on", {SUBMIT: status(500)}, "answers HTTP 500; it is not paid"),
    Row("thanks: refuses", {THANKS: edit("<h1>", REFUSAL + "<h1>")}, "then refuses: 決済エラー; it is not paid"),
    Row("thanks: another", {THANKS: edit('id="order-number">', 'id="order-number">9')}, "then shows order 9"),
]


@pytest.fixture
def slow_list(shop: TamperingShop) -> None:
    shop.behind.shop.settings = replace(shop.behind.shop.settings, reflection_delay_seconds=600)


@pytest.mark.usefixtures("slow_list")
@pytest.mark.parametrize("rows", [ROWS[::2], ROWS[1::2]], ids=["even", "odd"])
async def test_the_number_in_the_head_is_never_lost(hostile: Bench, shop: TamperingShop, rows: list[Row]) -> None:
    hostile.settings["step_timeout_seconds"] = STEP_SECONDS
    async with hostile.worker():
        for task, row in enumerate(rows):
            shop.tampers = dict(row.tampers)
            hostile.gateway.offer(f"po-{task}", hostile.intent())
            end = await hostile.gateway.end_of(f"po-{task}")
            counters = await shop.control.counters()
            number = counters["order_numbers"][-1]
            assert end.site_order_id == number, f"{row.name}: {end.detail}"
            assert row.words in end.detail, row.name
            expected = (NEEDS_HUMAN, ORDERED, 0) if row.words else (SUCCEEDED, orders_pb2.ORDER_STATE_PAID, 1)
            paid = counters["payments_by_order"].get(number, 0)
            assert (end.terminal_status, end.state, paid) == expected, f"{row.name}: {end.detail}"
            meta = json.loads((hostile.folder / f"evidence/po-{task}/04-order-submit.meta.json").read_text("utf-8"))
            assert meta["location"].endswith(number), row.name


@pytest.mark.usefixtures("slow_list")
async def test_the_number_is_in_the_journal_before_the_thank_you_page_is_asked_for(
    hostile: Bench, shop: TamperingShop
) -> None:
    held = asyncio.Event()

    async def hold() -> AsyncIterator[bytes]:
        await held.wait()
        yield b""

    shop.arm(*THANKS, lambda _answer: hold())
    hostile.gateway.offer("po-1", hostile.intent())
    async with hostile.worker():
        await shop.asked(*THANKS)
        order = await hostile.in_journal(lambda journal: journal.orders.find("po-1"))
        assert order is not None
        numbers = (await shop.control.counters())["order_numbers"]
        assert ([order.site_order_id], order.state) == (numbers, OrderState.ORDERED)
        held.set()
        await hostile.gateway.end_of("po-1")


@pytest.mark.usefixtures("slow_list")
@pytest.mark.parametrize("where", [THANKS, PAYMENT], ids=["thanks", "payment page"])
async def test_a_stop_while_nothing_is_sent_ends_with_the_number_and_no_payment(
    hostile: Bench, shop: TamperingShop, where: tuple[str, str]
) -> None:
    shop.arm(*where, lambda _answer: drip())
    hostile.gateway.offer("po-1", hostile.intent())
    if where == THANKS:
        shop.arm(*PAYMENT, lambda _answer: hang())
    async with hostile.worker():
        await shop.asked(*where)
    end = hostile.gateway.ended["po-1"]
    counters = await shop.control.counters()
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, ORDERED)
    assert [end.site_order_id] == counters["order_numbers"]
    assert "the worker was stopped after the click; no payment was sent" in end.detail
    assert counters["payments_made"] == 0


@pytest.mark.usefixtures("slow_list")
async def test_a_full_disk_at_the_click_loses_no_number(hostile: Bench, shop: TamperingShop) -> None:
    def no_evidence(answer: Answer) -> Answer:
        folder = hostile.folder / "evidence/po-1"
        shutil.rmtree(folder)
        folder.write_text("in the way")
        return answer

    shop.arm(*SUBMIT, no_evidence)
    end = await hostile.execute()
    counters = await shop.control.counters()
    assert (end.terminal_status, end.state, [end.site_order_id]) == (NEEDS_HUMAN, ORDERED, counters["order_numbers"])
    assert "evidence could not be written" in end.detail
    assert "no payment was sent" in end.detail


@pytest.mark.usefixtures("slow_list")
async def test_a_journal_that_cannot_be_written_after_the_click_is_written_later(
    hostile: Bench, shop: TamperingShop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    honest, tries = Orders.record, list[str]()

    async def full(journal: Orders, task_id: str, entry: JournalEntry) -> int:
        if entry.state is OrderState.ORDERED and len(tries) < 2:
            tries.append(entry.event)
            raise sqlite3.OperationalError("database or disk is full")
        return await honest(journal, task_id, entry)

    monkeypatch.setattr(Orders, "record", full)
    monkeypatch.setattr("worker.orders.run.WRITE_AGAIN", 0.01)
    end = await hostile.execute()
    (number,) = (await shop.control.counters())["order_numbers"]
    assert (end.terminal_status, end.site_order_id, tries) == (SUCCEEDED, number, ["ordered", "ordered"])
    told = [record for record in caplog.records if "cannot be written after the click" in record.getMessage()]
    assert [getattr(record, "site_order_id", None) for record in told] == [number, number]


# Whose number it is

Knows = Callable[[Bench, str], dict[str, Any]]


def the_journal_knows(_bench: Bench, _number: str) -> dict[str, Any]:
    return {}


def the_lease_knows(bench: Bench, number: str) -> dict[str, Any]:
    bench.settings["trading_db_path"] = bench.folder / "another.db"
    return {"other_site_order_ids": [number]}


def the_gateway_knows(bench: Bench, number: str) -> dict[str, Any]:
    bench.settings["trading_db_path"] = bench.folder / "another.db"
    bench.gateway.others = pb.OtherOrders(site_order_ids=[number])
    return {}


@pytest.mark.parametrize("knows", [the_journal_knows, the_lease_knows, the_gateway_knows])
@pytest.mark.parametrize("paid", [True, False], ids=["paid", "unpaid"])
async def test_another_tasks_number_is_not_this_orders(
    hostile: Bench, shop: TamperingShop, knows: Knows, *, paid: bool
) -> None:
    if not paid:
        shop.arm(*PAYMENT, status(500))
    first = await hostile.execute("po-1")
    shop.tampers.clear()
    number = first.site_order_id
    shop.arm(*SUBMIT, lambda answer: answer.with_header("location", f"/order/thanks?order_number={number}"))
    end = await hostile.execute("po-2", **knows(hostile, number))
    assert (end.terminal_status, end.state, end.site_order_id) == (NEEDS_HUMAN, ORDERED, "")
    assert f"shows order {number}, which is another task's; it is not paid" in end.detail
    assert all(report.site_order_id == "" for report in hostile.gateway.reports("po-2"))
    counters = await shop.control.counters()
    assert (counters["orders_placed"], counters["payments_made"]) == (2, int(paid))


async def test_an_order_that_is_paid_already_was_not_paid_by_this_run(hostile: Bench, shop: TamperingShop) -> None:
    """The number is nobody's that is known: a stranger's, who has paid it."""
    stranger = await shop.control.add_order({"code": "camera-body", "quantity": 1})
    page = f'<div id="payment-state" data-state="paid"></div><dl><dd id="order-number">{stranger}</dd></dl>'
    shop.arm(*SUBMIT, lambda answer: answer.with_header("location", f"/order/thanks?order_number={stranger}"))
    shop.arm(*THANKS, status(500))
    shop.arm(*PAYMENT, body(page.encode()))
    end = await hostile.execute()
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, ORDERED)
    assert f"shows order {stranger} as paid, but no payment was sent by this run" in end.detail


# Whether a payment was sent


@dataclass(frozen=True)
class Paying:
    name: str
    tampers: dict[tuple[str, str], Tamper]
    sent: bool
    options: dict[str, str] = field(default_factory=dict)
    words: str = ""


SLIP = '<dt>払込票番号</dt><dd id="slip-number">123</dd></dl>'
PAYING = [
    Paying("the payment page fails", {PAYMENT: status(500)}, sent=False),
    Paying("the payment page is another", {PAYMENT: body(b"<p>x</p>")}, sent=False),
    Paying("another amount", {PAYMENT: edit("1,630円", "1,631円")}, sent=False, words="nothing was paid"),
    Paying("another way to pay", {PAYMENT: edit("クレジットカード", "コンビニ前払い")}, sent=False),
    Paying("the answer fails", {PAY: status(500)}, sent=True),
    Paying("the answer drips", {PAY: lambda _answer: drip()}, sent=True),
    Paying("the result fails", {RESULT: status(500)}, sent=True),
    Paying("no known state", {RESULT: edit('data-state="paid"', 'data-state="x"')}, sent=True),
    Paying(
        "a slip for a card",
        {RESULT: lambda answer: answer.edit('data-state="paid"', 'data-state="waiting"').edit("</dl>", SLIP)},
        sent=True,
        words="to be paid by card shows awaiting_payment and a slip",
    ),
    Paying(
        "paid, in a store",
        {RESULT: edit('data-state="waiting"', 'data-state="paid"')},
        sent=True,
        options={"payment_method": "convenience_store"},
        words="to be paid by convenience_store shows paid",
    ),
]


async def test_a_payment_that_was_sent_is_told_from_one_that_was_not(hostile: Bench, shop: TamperingShop) -> None:
    hostile.settings["step_timeout_seconds"] = STEP_SECONDS
    async with hostile.worker():
        for task, row in enumerate(PAYING):
            shop.tampers = dict(row.tampers)
            hostile.gateway.offer(f"po-{task}", hostile.intent(options=row.options))
            end = await hostile.gateway.end_of(f"po-{task}")
            assert (end.terminal_status, end.state) == (NEEDS_HUMAN, ORDERED), f"{row.name}: {end.detail}"
            sent = "the payment was sent; it is not known whether it was taken" in end.detail
            not_sent = "no payment was sent" in end.detail
            assert (sent, not_sent) == (row.sent, not row.sent), f"{row.name}: {end.detail}"
            assert row.words in end.detail, row.name
            assert "convenience store payment" not in end.detail, row.name
            assert shop.behind.shop.requests["pay"] == sum(one.sent for one in PAYING[: task + 1]), row.name
