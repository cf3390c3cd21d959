"""Signing in and out, the end of a session, forged forms, and who may only look, as the browser has it."""

from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.gateway.console.browser import console
from tests.gateway.console.chromium.window import window
from tests.gateway.console.test_every_page import VIEWER
from tests.gateway.support.manual_time import ManualTime

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.asyncio(loop_scope="module")]

COOKIE = "order_gateway_session"


async def test_in_with_a_wrong_token_and_a_right_one_and_out(chromium: Browser, tmp_path: Path) -> None:
    async with (
        console(tmp_path) as (gateway, _),
        window(chromium, gateway.http_port, expected=["status of 401"]) as seen,
    ):
        await seen.go("/console/alerts")
        await seen.page.get_by_label("Token").fill("not-a-token-of-anybody")
        await seen.page.keyboard.press("Enter")
        await seen.page.wait_for_selector("[role=alert]")
        assert "not valid" in await seen.reads("[role=alert]")
        await seen.sign_in()
        assert seen.page.url.endswith("/console/alerts")
        assert await seen.page.evaluate("document.cookie") == "", "no script reads the session"
        await seen.page.get_by_role("button", name="Sign out").click()
        await seen.page.wait_for_selector("#token")
        assert await seen.page.context.cookies() == []
        await seen.go("/console/alerts")
        assert "/console/sign-in" in seen.page.url


async def test_an_open_page_says_that_its_session_has_ended(chromium: Browser, tmp_path: Path) -> None:
    time = ManualTime()
    settings = {"time": time, "console_session_seconds": 600}
    async with console(tmp_path, **settings) as (gateway, _), window(chromium, gateway.http_port) as seen:
        await seen.go()
        await seen.sign_in()
        time.advance(timedelta(seconds=600))
        await gateway.api.submit("po-1", requires_approval=True)
        await seen.page.wait_for_selector("#connection:not([hidden]) a")
        assert "The session has ended." in await seen.reads("#connection")
        await seen.page.click("#connection a")
        await seen.page.wait_for_selector("#token")


async def test_a_form_without_its_mark_does_nothing(chromium: Browser, tmp_path: Path) -> None:
    async with (
        console(tmp_path) as (gateway, _),
        window(chromium, gateway.http_port, expected=["status of 403"]) as seen,
    ):
        await gateway.api.submit("po-1")
        await seen.go("/console/tasks/po-1")
        await seen.sign_in()
        form = "form[action='/console/do/cancel']"
        await seen.page.eval_on_selector(f"{form} [name=csrf]", "each => each.value = 'x'.repeat(64)")
        await seen.page.locator("details:has(form[action='/console/do/cancel']) summary").click()
        await seen.page.locator(f"{form} [name=reason]").fill("forged")
        await seen.page.locator(f"{form} button.go").click()
        await seen.page.wait_for_selector("text=this form is of another session")
        assert await gateway.api.status("po-1") == "queued"


async def test_a_form_of_another_site_does_nothing(chromium: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, _), window(chromium, gateway.http_port, expected=["status of 4"]) as seen:
        await gateway.api.submit("po-1")
        await seen.go()
        await seen.sign_in()
        # The same machine by another name: another origin, and another site.
        there = f"http://localhost:{gateway.http_port}/elsewhere"
        action = f"{seen.home}/console/do/cancel"
        page = f"<form method=post action='{action}'><input name=task_id value=po-1><button>x</button></form>"
        await seen.page.route(there, lambda route: route.fulfill(body=page, content_type="text/html"))
        await seen.page.goto(there)
        await seen.page.click("button")
        await seen.page.wait_for_selector("text=another site")
        assert await gateway.api.status("po-1") == "queued"


async def test_who_may_only_look_is_shown_no_button(chromium: Browser, tmp_path: Path) -> None:
    async with console(tmp_path, viewer_token=(VIEWER,)) as (gateway, _), window(chromium, gateway.http_port) as seen:
        await gateway.api.submit("po-1", requires_approval=True)
        await seen.go("/console/tasks/po-1")
        await seen.sign_in("the-token-of-eve-who-looks")
        assert "looks only" in await seen.reads(".who")
        assert "may look and not act" in await seen.reads()
        assert await seen.page.locator("form[action^='/console/do/']").count() == 0
