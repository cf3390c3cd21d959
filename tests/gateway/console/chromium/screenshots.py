"""The pictures of docs/console.md: `make screenshots` draws the main pages, with what a bad night leaves on them."""

import asyncio
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Final

from playwright.async_api import async_playwright

from gateway.domain.states import OrderState
from tests.gateway.console.browser import Visitor, console
from tests.gateway.console.chromium.window import window
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.manual_time import ManualTime
from worker.evidence.screenshots import find_chromium

FOLDER: Final = Path(__file__).parents[4] / "docs" / "screenshots"

WIDTH: Final = 1280

PAGES: Final = {
    "decisions": "/console",
    "task": "/console/tasks/po-1042",
    "tasks": "/console/tasks",
    "queue": "/console/queue",
    "money": "/console/money",
    "statement": "/console/statement?day=2026-11-30&zone=Asia/Tokyo",
    "catalogue": "/console/site",
    "alerts": "/console/alerts",
    "callbacks": "/console/callbacks",
    "history": "/console/history",
}


async def stage(gateway: RunningGateway, alice: Visitor, time: ManualTime) -> None:
    """Let happen what a person in charge meets."""
    api = gateway.api
    for number in (1040, 1041):
        lease = await api.take(f"po-{number}", "tokyo-1")
        time.advance(timedelta(seconds=40))
        await api.permit(lease, "tokyo-1")
        time.advance(timedelta(seconds=20))
        placed = {"site_order_id": "266123-20261130-0001", "payable_yen": 12_800, "worker_id": "tokyo-1"}
        await api.report(lease, OrderState.ORDERED, terminal=True, **placed)
        time.advance(timedelta(minutes=11))
    lease = await api.take("po-1042", "tokyo-1")
    await api.report(lease, OrderState.IN_CART, worker_id="tokyo-1", detail="the cart is filled")
    time.advance(timedelta(seconds=90))
    await api.permit(lease, "tokyo-1")
    time.advance(timedelta(minutes=3))
    await alice.act("/console/tasks/po-1042", "expire", reason="its machine lost power")
    lease = await api.take("po-1043", "tokyo-1")
    time.advance(timedelta(minutes=1))
    await api.report(
        lease, OrderState.IN_CART, terminal=True, worker_id="tokyo-1", detail="3-D Secure was not answered"
    )
    await api.submit("po-1044", requires_approval=True, max_total_yen=128_000)
    await api.submit("po-1045", max_total_yen=9_800, labels={"team": "kitchen"})
    budget = {"budget_id": "daily", "period": "day", "limit_yen": "500,000", "reason": "agreed with accounting"}
    await alice.act("/console/money", "set_budget", **budget)
    await alice.act("/console/callbacks", "send_test_callback", url="http://127.0.0.1:9/orders")
    await alice.act("/console/queue", "pause", reason="the card is being replaced")


async def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    time = ManualTime()
    with tempfile.TemporaryDirectory(prefix="screenshots-") as folder:
        async with (
            async_playwright() as playwright,
            await playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"]) as browser,
            console(Path(folder), time=time, catalog_interval_seconds=3600) as (gateway, alice),
            window(browser, gateway.http_port, width=WIDTH) as seen,
        ):
            await stage(gateway, alice, time)
            await seen.go()
            await seen.sign_in()
            for name, path in PAGES.items():
                await seen.go(path)
                await seen.page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")


if __name__ == "__main__":
    asyncio.run(main())
