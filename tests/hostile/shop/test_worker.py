"""The worker itself against a hostile shop: how its orders end, and that nothing of it stands still meanwhile."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from ordergateway.v1 import orders_pb2

from tests.hostile.shop.tampering_shop import Answer, Tamper, TamperingShop
from tests.hostile.shop.test_amounts import TRUE
from tests.hostile.shop.test_answers import FORM
from tests.hostile.shop.test_burning_pages import NESTED
from tests.worker.conftest import Bench

NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
IN_CART = orders_pb2.ORDER_STATE_IN_CART
ORDERED = orders_pb2.ORDER_STATE_ORDERED
COMMAND = str(Path(sys.executable).with_name("order-worker"))


def burn(answer: Answer) -> Answer:
    """So long that no machine reads it before its time is up."""
    return replace(answer, body=(NESTED * 3).encode())


def edit(old: str, new: str) -> Tamper:
    return lambda answer: answer.edit(old, new)


BEFORE_THE_PERMIT: list[tuple[str, Tamper, int, str]] = [
    ("two amounts", edit(TRUE, '<dd id="payable">1円</dd>' + TRUE), 5004, "could not be read"),
    ("nothing to pay", edit(TRUE, TRUE.replace("298,000", "0")), 5004, "asks for 0 yen"),
    ("over the limit", edit(TRUE, TRUE.replace("298,000", "300,001")), 5004, "more than the limit"),
    ("a form to elsewhere", edit(FORM, FORM.replace('"/', '"//other.example/')), 5004, "another site"),
    ("another way to pay by its text", edit("クレジットカード", "代金引換"), 5004, "by its mark and its text alike"),
    ("another way to pay by its mark", edit('data-method="card"', 'data-method="card_sms"'), 5004, "by its mark and"),
    ("five cameras", edit('quantity">1<', 'quantity">5<'), 0, "wanted 1, shown 5"),
]


async def test_before_the_permit_it_ends_with_a_person_and_without_a_click(hostile: Bench, shop: TamperingShop) -> None:
    async with hostile.worker():
        for number, (name, tamper, code, words) in enumerate(BEFORE_THE_PERMIT):
            shop.arm("GET", "/order/confirm", tamper)
            hostile.gateway.offer(f"po-{number}", hostile.intent("camera-body", max_total_yen=300_000))
            end = await hostile.gateway.end_of(f"po-{number}")
            assert (end.terminal_status, end.state, end.error_code) == (NEEDS_HUMAN, IN_CART, code), name
            assert words in end.detail, name
            assert not await hostile.in_journal(lambda journal, task=f"po-{number}": journal.claims.has_click(task))
    assert hostile.gateway.requests("RequestSubmitPermit") == []
    assert shop.behind.shop.requests["submit"] == 0


@pytest.mark.extended
async def test_another_amount_at_the_payment_leaves_the_order_to_a_person(hostile: Bench, shop: TamperingShop) -> None:
    shop.arm("GET", "/payment", lambda answer: answer.edit("298,000円", "9,999,999円"))
    end = await hostile.execute(intent_json=hostile.intent("camera-body"))
    assert (end.terminal_status, end.state, end.error_code) == (NEEDS_HUMAN, ORDERED, 5004)
    assert "asks for 9999999 yen, confirmed were 298000 yen; nothing was paid" in end.detail
    counters = await shop.control.counters()
    assert (counters["orders_placed"], counters["payments_made"]) == (1, 0)
    assert [end.site_order_id] == counters["order_numbers"]


async def test_an_answer_that_drips_is_given_up_with_its_step(hostile: Bench, shop: TamperingShop) -> None:
    async def drip() -> AsyncIterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n\r\n"
        while True:
            yield b"<"
            await asyncio.sleep(0.05)

    shop.arm("GET", "/order/confirm", lambda _answer: drip())
    hostile.settings["step_timeout_seconds"] = 1
    end = await hostile.execute()
    assert end.terminal_status == orders_pb2.TASK_STATUS_FAILED
    assert "took longer than 1" in end.detail


# Processes


@asynccontextmanager
async def worker_process(bench: Bench) -> AsyncIterator[psutil.Process]:
    """`order-worker run`, killed at the end if it still runs."""
    settings = {
        "RAKUTEN_ORDER_GATEWAY_URL": f"grpc://{bench.target}",
        "RAKUTEN_WORKER_TOKEN": "secret-token",
        "RAKUTEN_SANDBOX_URL": bench.shop.url,
        "RAKUTEN_TRADING_DB_PATH": "trading.db",
        "RAKUTEN_EVIDENCE_DIR": "evidence",
        "RAKUTEN_ORDER_MAX_TOTAL_YEN": "1000000",
        "RAKUTEN_SCREENSHOTS": "no",
    }
    inherited = {name: value for name, value in os.environ.items() if not name.upper().startswith("RAKUTEN_")}
    process = await asyncio.create_subprocess_exec(
        COMMAND, "run", cwd=bench.folder, env=inherited | settings, stderr=asyncio.subprocess.PIPE
    )
    try:
        yield psutil.Process(process.pid)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def readers_of(worker: psutil.Process) -> list[psutil.Process]:
    """The processes that read pages for the worker, once there are any."""
    async with asyncio.timeout(60):
        while not (found := worker.children()):  # noqa: ASYNC110 -- a process that starts gives no signal
            await asyncio.sleep(0.02)
    return found


async def ended(process: psutil.Process) -> None:
    async with asyncio.timeout(60):
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:  # noqa: ASYNC110 -- nor one that ends
            await asyncio.sleep(0.02)


async def test_while_a_page_burns_leases_are_renewed_and_a_stop_is_obeyed(hostile: Bench, shop: TamperingShop) -> None:
    hostile.gateway.ttl = 3.0
    shop.arm("GET", "/order/confirm", burn)
    async with worker_process(hostile) as worker:
        hostile.gateway.offer("po-1", hostile.intent())
        await shop.asked("GET", "/order/confirm")
        (reader,) = await readers_of(worker)
        renewed = len(hostile.gateway.requests("RenewLease"))
        await hostile.gateway.called("RenewLease", times=renewed + 2)
        worker.send_signal(signal.SIGTERM)
        end = await hostile.gateway.end_of("po-1")
        assert end.terminal_status == NEEDS_HUMAN
        await ended(worker)
        await ended(reader)


async def test_a_killed_worker_leaves_no_reader_behind(hostile: Bench, shop: TamperingShop) -> None:
    """Reading or not: its orders end with the worker, and a page's time with the kernel."""
    async with worker_process(hostile) as worker:
        hostile.gateway.offer("po-1", hostile.intent())
        await hostile.gateway.end_of("po-1")
        (idle,) = await readers_of(worker)
        worker.kill()
        await ended(idle)


@pytest.mark.extended
async def test_nor_one_that_is_busy(hostile: Bench, shop: TamperingShop) -> None:
    shop.arm("GET", "/order/confirm", burn)
    async with worker_process(hostile) as worker:
        hostile.gateway.offer("po-1", hostile.intent())
        await shop.asked("GET", "/order/confirm")
        (busy,) = await readers_of(worker)
        worker.kill()
        await ended(busy)


async def test_the_reader_has_no_secrets(hostile: Bench) -> None:
    async with worker_process(hostile) as worker:
        hostile.gateway.offer("po-1", hostile.intent())
        await hostile.gateway.end_of("po-1")
        (reader,) = await readers_of(worker)
        assert "secret-token" in json.dumps(worker.environ())
        assert "secret-token" not in json.dumps(reader.environ())
        assert [socket for socket in reader.net_connections(kind="all") if socket.raddr] == []
