"""Properties of reading a shop's pages: no amount that a person would not see, and bounded in time, memory and answer.

An input is a byte that says how to read the rest: as a page, or as decisions that change one of the real pages.
"""

import inspect
import json
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.choices import Choices
from tests.fuzz.oracle import contradiction, line_count
from worker.sites.page_process import MAX_ANSWER_BYTES, answer_to
from worker.sites.page_reader import _result_of
from worker.sites.sandbox import account_pages as sandbox_account_pages
from worker.sites.sandbox import checkout_pages as sandbox_checkout_pages
from worker.sites.sandbox import pages as sandbox_pages

URL = "http://shop.example/order/confirm"
READINGS = [
    function
    for module in (sandbox_pages, sandbox_checkout_pages, sandbox_account_pages)
    for function in vars(module).values()
    if inspect.isfunction(function) and list(inspect.signature(function).parameters) == ["page"]
]
REAL_PAGES = Path(__file__).parent / "pages"
MOST_EDITS = 12

PIECES: list[str] = json.loads((Path(__file__).parent / "pieces.json").read_text())


@cache
def real_pages() -> tuple[bytes, ...]:
    """Pages as the sandbox shop shows them, without their style sheet."""
    return tuple(path.read_bytes() for path in sorted(REAL_PAGES.glob("*.html")))


def page_from(data: bytes) -> bytes:
    """The page to be tried."""
    if data[:1] < b"\x60":
        return data[1:]
    choices = Choices(data[1:])
    page = choices.one_of(real_pages())
    for _ in range(MOST_EDITS):
        if choices.used_up:
            break
        at = choices.below(len(page) + 1)
        match choices.below(4):
            case 0:
                page = page[:at] + choices.one_of(PIECES).encode() + page[at:]
            case 1:
                page = page[:at] + page[at + choices.below(300) :]
            case 2:
                page = page[:at] + page[at : at + choices.below(400)] + page[at:]
            case 3:
                # To the beginning of a tag, where a piece does most.
                begin = page.find(b"<", at)
                page = page[:begin] + choices.one_of(PIECES).encode() + page[begin:]
    return page


def check(data: bytes) -> str:
    """Raises AssertionError where a property does not hold; returns what became of the input, for the figures."""
    html = page_from(data)
    values: dict[str, Any] = {}
    for reading in READINGS:
        name = reading.__name__
        order = {
            "module": reading.__module__,
            "name": name,
            "args": [],
            "url": URL,
            "method": "GET",
            "http_status": 200,
        }
        text = answer_to(order, html)
        assert len(text) <= MAX_ANSWER_BYTES
        answer = json.loads(text)
        assert "fault" not in answer, f"{name}: {answer['fault']}"
        if "value" in answer:
            values[name] = _result_of(reading).validate_python(answer["value"])
    return _judge(html, values)


def _judge(html: bytes, values: dict[str, Any]) -> str:
    confirmation, payment, cart = (values.get(f"read_{name}") for name in ("confirmation", "payment_form", "cart"))
    if confirmation is not None:
        assert len(confirmation.items) == line_count(html), "lines are left out"
        assert confirmation.form.action.startswith("/")
        assert set(confirmation.form.fields) == {"token"}
    if cart:
        assert len(cart) == line_count(html), "lines are left out"
    amounts = {shown.payable_yen for shown in (confirmation, payment) if shown is not None} - {None}
    for amount in amounts:
        why = contradiction(html, amount)
        assert why is None, f"{amount} yen were read, but {why}"
    listed, detail = values.get("read_order_list"), values.get("read_order_detail")
    if listed is not None:
        assert all(order.items and order.order_number for order in listed.orders)
    if amounts:
        return "an amount"
    return "a value" if confirmation or payment or cart or listed or detail else "nothing"
