"""What changes elsewhere shows without a reload; and everything works by keyboard."""

import time
from pathlib import Path
from typing import Final

import pytest
from playwright.async_api import Browser

from tests.gateway.console.browser import OPERATOR, console
from tests.gateway.console.chromium.window import Window, window
from tests.gateway.support.in_process import running_gateway

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.asyncio(loop_scope="module")]

LIVE_WITHIN: Final = 2.0
MOST_STEPS: Final = 60


async def test_a_change_shows_within_two_seconds(chromium: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice), window(chromium, gateway.http_port) as seen:
        await seen.go()
        await seen.sign_in()
        assert "Nothing waits" in await seen.reads()
        took = []
        for number in range(5):
            await gateway.api.submit(f"po-{number}", requires_approval=True)
            filed = time.monotonic()
            await seen.page.wait_for_selector(f"#h-po-{number}")
            took.append(time.monotonic() - filed)
        assert sorted(took)[2] < LIVE_WITHIN, took
        await alice.act("/console/tasks/po-0", "deny", reason="not wanted")
        await seen.page.wait_for_selector("#h-po-0", state="detached")


async def test_a_form_that_is_filled_in_stays(chromium: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, _), window(chromium, gateway.http_port) as seen:
        await gateway.api.submit("po-1", requires_approval=True)
        await seen.go()
        await seen.sign_in()
        await seen.page.locator("summary", has_text="Approve").click()
        reason = seen.page.locator("form[action='/console/do/approve'] [name=reason]")
        await reason.fill("asked the")
        await gateway.api.submit("po-2", requires_approval=True)
        await seen.page.wait_for_selector("#connection:not([hidden])")
        assert "Something has changed" in await seen.reads("#connection")
        assert await reason.input_value() == "asked the"


async def test_a_lost_connection_is_said_and_found_again(chromium: Browser, tmp_path: Path) -> None:
    expected = ["net::ERR"]
    async with console(tmp_path) as (gateway, _):
        port = gateway.http_port
        opened = window(chromium, port, expected=expected)
        seen = await opened.__aenter__()
        await seen.go()
        await seen.sign_in()
    await seen.page.wait_for_selector("#connection:not([hidden])")
    assert "Connection lost" in await seen.reads("#connection")
    async with running_gateway(tmp_path, operator_token=(OPERATOR,), gateway_port=port):
        await seen.page.wait_for_selector("#connection[hidden]", state="attached")
        await opened.__aexit__(None, None, None)


async def focused(seen: Window, selector: str) -> None:
    """Press Tab until what is wanted has the focus."""
    for _ in range(MOST_STEPS):
        await seen.page.keyboard.press("Tab")
        if await seen.page.evaluate("(wanted) => document.activeElement.matches(wanted)", selector):
            outline = await seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none", "who uses keys sees where they are"
            return
    raise AssertionError(f"no number of Tabs leads to {selector}")


async def test_an_approval_by_keyboard_alone(chromium: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, _), window(chromium, gateway.http_port) as seen:
        await gateway.api.submit("po-1", requires_approval=True, max_total_yen=9_000)
        await seen.go("/console/tasks/po-1")
        await seen.page.keyboard.type("the-token-of-alice")
        await seen.page.keyboard.press("Enter")
        await seen.page.wait_for_selector(".who")
        await focused(seen, "#act-approve-po-1 > summary")
        await seen.page.keyboard.press("Enter")
        await focused(seen, "textarea[name=reason]")
        await seen.page.keyboard.type("asked the department")
        await focused(seen, "form[action='/console/do/approve'] button")
        await seen.page.keyboard.press("Enter")
        await seen.page.wait_for_selector(".notice.done[role=status]")
        [approval] = gateway.rows("SELECT decided_by, max_total_yen FROM approvals")
        assert dict(approval) == {"decided_by": "alice", "max_total_yen": 9_000}
