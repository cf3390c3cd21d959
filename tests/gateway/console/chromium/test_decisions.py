"""Each decision, from the link of an alert to done, by somebody who has to sign in first."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from playwright.async_api import Browser

from gateway.domain.states import OrderState
from tests.gateway.console.browser import Visitor, console
from tests.gateway.console.chromium.window import window
from tests.gateway.support.in_process import RunningGateway

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.asyncio(loop_scope="module")]

Stage = Callable[[RunningGateway, Visitor], Awaitable[None]]

A_MINUTE: Final = 60


async def in_hand(gateway: RunningGateway, _: Visitor) -> None:
    await gateway.api.take()


async def stale(gateway: RunningGateway, alice: Visitor) -> None:
    lease = await gateway.api.take()
    await gateway.api.permit(lease)
    await alice.act("/console/tasks/po-1", "expire", reason="its machine is off")


async def stopped_at_3d_secure(gateway: RunningGateway, _: Visitor) -> None:
    lease = await gateway.api.take()
    await gateway.api.permit(lease)
    await gateway.api.report(lease, OrderState.IN_CART, terminal=True, detail="the bank asks for a code")


async def stopped_before_the_click(gateway: RunningGateway, _: Visitor) -> None:
    lease = await gateway.api.take()
    await gateway.api.report(lease, OrderState.IN_CART, terminal=True, detail="the item is sold out")


async def put_back(gateway: RunningGateway, alice: Visitor) -> None:
    await stale(gateway, alice)
    await alice.act("/console/tasks/po-1", "requeue", reason="looked")


async def number_twice(gateway: RunningGateway, _: Visitor) -> None:
    for task_id in ("po-2", "po-1"):
        lease = await gateway.api.take(task_id)
        await gateway.api.permit(lease)
        await gateway.api.report(lease, OrderState.ORDERED, site_order_id="266123-1", terminal=True)


async def to_be_approved(gateway: RunningGateway, _: Visitor) -> None:
    await gateway.api.submit("po-1", requires_approval=True, max_total_yen=50_000)


async def filed(gateway: RunningGateway, _: Visitor) -> None:
    await gateway.api.submit("po-1")


class Case(NamedTuple):
    """What has happened, what is decided, what is filled in, and what the task is then."""

    stage: Stage
    action: str
    fields: dict[str, str]
    status: str


CASES: Final = (
    Case(stale, "resolve_succeeded", {"site_order_id": "266123-1"}, "succeeded"),
    Case(stale, "requeue", {}, "queued"),
    Case(stopped_at_3d_secure, "resolve_succeeded", {"site_order_id": "266123-1"}, "succeeded"),
    Case(stopped_before_the_click, "resolve_failed", {}, "failed"),
    Case(stopped_before_the_click, "requeue", {}, "queued"),
    Case(put_back, "withdraw", {}, "stale"),
    Case(number_twice, "clear_alert", {}, "needs_human"),
    Case(number_twice, "resolve_succeeded", {}, "succeeded"),
    Case(to_be_approved, "approve", {"max_total_yen": "¥48,000"}, "queued"),
    Case(to_be_approved, "deny", {}, "failed"),
    Case(in_hand, "expire", {}, "stale"),
    Case(in_hand, "request_cancel", {}, "leased"),
    Case(filed, "cancel", {}, "failed"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.stage.__name__}-{case.action}")
async def test_from_the_link_to_done(chromium: Browser, tmp_path: Path, case: Case) -> None:
    async with console(tmp_path) as (gateway, alice):
        await case.stage(gateway, alice)
        async with window(chromium, gateway.http_port) as seen:
            begun = time.monotonic()
            await seen.go("/console/tasks/po-1")
            await seen.sign_in()
            assert seen.page.url.endswith("/console/tasks/po-1"), "signing in leads on to the task"
            effect = seen.page.locator(f"form[action='/console/do/{case.action}'] .effect").first
            assert await effect.text_content(), "what will happen is said before"
            await seen.act(case.action, reason="seen on the site <b>", **case.fields)
            assert time.monotonic() - begun < A_MINUTE
            await seen.go("/console/history")
            assert "seen on the site <b>" in await seen.reads()
        assert await gateway.api.status("po-1") == case.status
        [event] = gateway.rows("SELECT actor, reason FROM events WHERE reason = 'seen on the site <b>'")
        assert event["actor"] == "alice"


async def test_what_is_refused_is_said_and_what_was_typed_is_kept(chromium: Browser, tmp_path: Path) -> None:
    async with console(tmp_path) as (gateway, alice):
        await stale(gateway, alice)
        async with window(chromium, gateway.http_port, expected=["status of 4"]) as seen:
            await seen.go("/console/tasks/po-1")
            await seen.sign_in()
            shown = await seen.page.locator(".refused dl").text_content() or ""
            assert "Possible in" in shown
            await seen.page.locator("summary", has_text="It was ordered").click()
            form = seen.page.locator("form[action='/console/do/resolve_succeeded']")
            await form.locator("[name=reason]").fill("a reason that took long to write")
            await form.locator("[name=site_order_id]").fill("not a number <i>")
            # Meanwhile somebody else has decided.
            await alice.act("/console/tasks/po-1", "requeue", reason="looked")
            await form.locator("button.go").click()
            await seen.page.wait_for_selector("[role=alert]")
            assert "Refused:" in await seen.reads("[role=alert]")
            assert await seen.page.locator("[name=reason]").input_value() == "a reason that took long to write"
        assert await gateway.api.status("po-1") == "queued"
