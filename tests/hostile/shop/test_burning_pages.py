"""Pages over which a parser burns: the worker's loop turns on, the page is given up, and the next one is read."""

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psutil
import pytest

from tests.hostile.shop.tampering_shop import Answer, TamperingShop
from worker.sites.page_process import LENGTH
from worker.sites.page_reader import PageReader
from worker.sites.port import Item, Page, PageChangedError
from worker.sites.sandbox.adapter import SandboxSite
from worker.sites.sandbox.pages import read_cart

NESTED = "<div>" * 40_000

BURNING: dict[str, str] = {
    "nested elements": NESTED,
    "nested, with what closes nothing": "<div></x>" * 40_000,
    "lists in lists": "<ul><li>" * 20_000,
    "definitions in definitions": "<dl><dt>" * 20_000,
    "formatting that is opened again": "".join(f"<i id=a{number}><p>" for number in range(5_000)),
    "links in tables": "<table><a>" * 10_000,
    "attributes": "<a " + " ".join(f"a{number}=1" for number in range(60_000)) + ">",
    "one attribute": f'<a title="{"x" * 4_000_000}">',
    "entities": "&NotEqualTilde;" * 250_000,
    "text": "円" * 1_300_000,
    "comments": "<!-->" * 800_000,
    "elements": "<b></b>" * 550_000,
    "lines": '<table id="cart-lines"><tr class="line">' + "<tr class=line>" * 250_000,
    "forms": "<form></form>" * 300_000,
    "unclosed": "<" * 4_000_000,
}


ALWAYS = {"nested elements", "formatting that is opened again", "attributes"}


@pytest.mark.parametrize("names", [ALWAYS, pytest.param(BURNING.keys() - ALWAYS, marks=pytest.mark.extended)], ids=len)
async def test_no_page_holds_up_the_loop_or_the_next_page(
    shop: TamperingShop, site: SandboxSite, names: set[str]
) -> None:
    item = Item(shop.item_url("sencha-100g"))
    await site.add_to_cart(item)
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.01)
            turns += 1

    turning = asyncio.create_task(turn())
    for name, html in BURNING.items():
        if name not in names:
            continue
        body = f'<body><div id="cart">{html}'.encode()[: 4 * 1024 * 1024]
        shop.arm("GET", "/cart", lambda answer, body=body: replace(answer, body=body))  # type: ignore[misc]
        before = turns
        with pytest.raises(PageChangedError):
            pytest.fail(f"{name}: read as {await site.read_cart()}")
        assert turns - before >= 2, f"{name}: the loop stood still"
        shop.tampers.clear()
        assert (await site.read_cart()).items == (item,), name
    turning.cancel()


STATES: dict[str, Callable[[str], str]] = {
    "arrays in arrays": lambda _state: "[" * 100_000 + "]" * 100_000,
    "objects in objects": lambda _state: '{"a":' * 100_000 + "1" + "}" * 100_000,
    "a little too deep": lambda state: state.replace('"items"', '"x": ' + "[" * 60 + "]" * 60 + ', "items"'),
    "a large number": lambda state: state.replace('"quantity": 1', '"quantity": ' + "9" * 100_000),
    "a number that no double holds": lambda state: state.replace('"quantity": 1', '"quantity": ' + "9" * 400),
    "a number beyond": lambda state: state.replace('"unitPrice": 1080', '"unitPrice": 1e999'),
    "not a number": lambda state: state.replace('"unitPrice": 1080', '"unitPrice": NaN'),
    "many members": lambda state: state.replace('"orders"', '"x": [' + "{}," * 500_000 + "{}], " + '"orders"'),
    "more behind it": lambda state: state + '; window.__INITIAL_STATE__ = {"orderListData": {}}',
    "a negative quantity": lambda state: state.replace('"quantity": 1', '"quantity": -1'),
    "a quantity that is true": lambda state: state.replace('"quantity": 1', '"quantity": true'),
    "a number of pages that is none": lambda state: state.replace('"pageCount": 1', '"pageCount": -1'),
    "an order of nothing": lambda state: state.replace('"items": [', '"items": [], "others": ['),
    "an address that is none": lambda state: state.replace('"itemUrl": "http', '"itemUrl": "http://[::1 http'),
    "an address without end": lambda state: state.replace('"itemUrl": "', '"itemUrl": "http://' + "a" * 10_000),
    "an order number of spaces": lambda state: state.replace('"orderNumber": "', '"orderNumber": "   ", "n": "'),
    "an order number of control codes": lambda state: state.replace('"orderNumber": "', r'"orderNumber": "\u001b[2J'),
    "an order number that is a list": lambda state: state.replace('"orderNumber": ', '"orderNumber": [1], "n": '),
    "a shop that is a list": lambda state: state.replace('"shopId": ', '"shopId": [], "n": '),
    "a name that is a number": lambda state: state.replace('"itemName": ', '"itemName": 1, "n": '),
}  # fmt: skip


def with_state(change: Callable[[str], str]) -> Callable[[Answer], Answer]:
    def tamper(answer: Answer) -> Answer:
        html = answer.body.decode()
        before, state, after = _split(html)
        changed = change(state)
        assert changed != state
        return replace(answer, body=(before + changed + after).encode())

    return tamper


def _split(html: str) -> tuple[str, str, str]:
    begin = html.index("__INITIAL_STATE__ = ") + len("__INITIAL_STATE__ = ")
    end = html.index(";</script>")
    return html[:begin], html[begin:end], html[end:]


async def test_no_order_list_is_believed_whose_data_cannot_be_read_whole(
    shop: TamperingShop, site: SandboxSite
) -> None:
    await shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    assert (await site.list_orders(since=None, max_pages=1)).window_fully_covered
    for name, change in STATES.items():
        shop.arm("GET", "/account/orders", with_state(change))
        listed = await site.list_orders(since=None, max_pages=1)
        assert (listed.orders, listed.window_fully_covered, len(listed.pages)) == ((), False, 1), name


async def test_data_counts_only_where_it_stands_once_and_is_run(shop: TamperingShop, site: SandboxSite) -> None:
    await shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    script = '<script id="initial-state">'
    for old, new in (
        (script, '<script>window.__INITIAL_STATE__ = {"orderListData": {}};</script>' + script),
        (script, '<script type="text/template">'),
        (script, '<script src="/other.js">'),
        (script, "<script>if (false) "),
        (script, f"<noscript>{script}"),
        (script, f"<template>{script}"),
        (script, f"<!-- {script}"),
    ):
        shop.arm("GET", "/account/orders", lambda answer, old=old, new=new: answer.edit(old, new))  # type: ignore[misc]
        listed = await site.list_orders(since=None, max_pages=1)
        assert (listed.orders, listed.window_fully_covered) == ((), False), new


async def test_lone_surrogates_are_replaced(shop: TamperingShop, site: SandboxSite) -> None:
    await shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    surrogate = with_state(lambda state: state.replace('"itemName": "', r'"itemName": "\ud83d'))
    shop.arm("GET", "/account/orders", surrogate)
    (order,) = (await site.list_orders(since=None, max_pages=1)).orders
    assert order.items[0].item_name.startswith("?")


# The process that reads

PAGE = Page("http://shop.example/cart", "GET", 200, b"")


def children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if "worker.sites.page_process" in child.cmdline()]


async def read(reader: PageReader, html: str) -> Any:
    return await reader.read(read_cart, replace(PAGE, html=html.encode()))


async def test_memory_is_bounded_and_cheap() -> None:
    reader = PageReader(memory_mib=64)
    assert await read(reader, '<div id="cart"><p id="cart-empty"></p></div>') == ()
    (process,) = children()
    assert process.memory_info().rss < 64 * 1024 * 1024
    with pytest.raises(PageChangedError, match=r"cannot be read"):
        await read(reader, "<b></b>" * 500_000)
    assert await read(reader, '<div id="cart"><p id="cart-empty"></p></div>') == ()
    await reader.close()
    assert children() == []


async def test_a_reading_that_is_broken_off_ends_its_process() -> None:
    reader = PageReader(cpu_seconds=60)
    reading = asyncio.create_task(read(reader, NESTED))
    while not children():  # noqa: ASYNC110 -- a process that starts gives no signal
        await asyncio.sleep(0.01)
    (process,) = children()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert not process.is_running()
    assert await read(reader, '<div id="cart"><p id="cart-empty"></p></div>') == ()
    await reader.close()


async def test_a_process_that_was_ended_is_replaced_for_the_next_page() -> None:
    reader = PageReader()
    empty = '<div id="cart"><p id="cart-empty"></p></div>'
    assert await read(reader, empty) == ()
    (process,) = children()
    process.kill()
    assert await read(reader, empty) == ()
    assert children() != [process]
    await reader.close()


async def test_two_pages_at_once_are_not_mixed_up() -> None:
    reader = PageReader()
    pages = [
        f'<div id="cart"><table id="cart-lines"><tr class="line"><td><a class="item-link" href="/{number}"></a>'
        '<td class="quantity">1<td><form method="post" action="/cart/remove">'
        '<input type="hidden" name="line" value="0"></form>'
        for number in range(20)
    ]
    carts = await asyncio.gather(*(read(reader, page) for page in pages))
    assert [cart[0].item.item_url for cart in carts] == [f"http://shop.example/{number}" for number in range(20)]
    await reader.close()


ORDER = {"module": read_cart.__module__, "name": "read_cart", "args": [], "url": "", "method": "", "http_status": 200}


class PageProcess:
    """The process by itself, with the ends of its pipes."""

    def __init__(self, cpu_seconds: float) -> None:
        command = [sys.executable, "-P", "-m", "worker.sites.page_process", str(cpu_seconds), "512"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def give(self, html: bytes) -> None:
        for frame in (json.dumps(ORDER).encode(), html):
            self.stdin.write(LENGTH.pack(len(frame)) + frame)
        self.stdin.flush()

    def answer(self) -> Any:
        (size,) = LENGTH.unpack(self.stdout.read(LENGTH.size))
        return json.loads(self.stdout.read(size))

    def end(self) -> int:
        """What it ends with once nobody gives it pages any more, as when the worker is gone."""
        self.stdin.close()
        with self.process:
            return self.process.wait(60)


def test_without_a_worker_the_process_ends() -> None:
    assert PageProcess(5).end() == 0


def test_in_the_middle_of_a_page_the_kernel_ends_it() -> None:
    busy = PageProcess(0.2)
    busy.give(NESTED.encode())
    assert busy.end() == -signal.SIGPROF


def test_each_page_has_the_whole_time() -> None:
    page = b'<div id="cart"><p id="cart-empty">' + b"<b></b>" * 50_000
    process = PageProcess(0.5)
    for _ in range(15):
        process.give(page)
        assert process.answer() == {"value": []}
    assert process.end() == 0


def test_a_stop_of_the_whole_group_leaves_it_to_the_worker() -> None:
    process = PageProcess(5)
    for _ in range(2):
        process.give(b'<div id="cart"><p id="cart-empty">')
        assert process.answer() == {"value": []}
        process.process.send_signal(signal.SIGTERM)
        process.process.send_signal(signal.SIGINT)
    assert process.end() == 0
