"""The page at /docs in a real browser that reaches nothing but the gateway."""

from pathlib import Path

import pytest
from playwright.async_api import Route, async_playwright

from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.rest_api import rest_client, submit
from worker.evidence.screenshots import find_chromium

pytestmark = pytest.mark.needs("chromium")

ARGUMENTS = ["--no-sandbox", "--disable-dev-shm-usage"]


async def test_a_person_opens_the_page_and_tries_the_contract(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, token="the-token", api_token=("the-token",)) as gateway:
        address = f"http://127.0.0.1:{gateway.http_port}"
        foreign: list[str] = []

        async def only_ours(route: Route) -> None:
            if route.request.url.startswith(address):
                await route.continue_()
            else:
                foreign.append(route.request.url)
                await route.abort()

        async with rest_client(gateway.http_port, "the-token") as client:
            await submit(client, "po-9", text="<script>document.title = 'taken over'</script>")
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
            try:
                context = await browser.new_context(http_credentials={"username": "me", "password": "the-token"})
                page = await context.new_page()
                faults: list[str] = []
                page.on("pageerror", lambda error: faults.append(str(error)))
                page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
                await context.route("**/*", only_ours)
                await page.goto(f"{address}/docs")
                await page.wait_for_selector("details")
                assert await page.locator("details").count() >= 17

                async def tried(path: str, method: str) -> str:
                    operation = (
                        page.locator("details").filter(has=page.get_by_text(path, exact=True), has_text=method).first
                    )
                    await operation.locator("summary").click()
                    for field in await operation.locator(".parameters input[required]").all():
                        await field.fill("po-9")
                    await operation.locator("button").click()
                    await operation.locator("pre:not([hidden])").wait_for()
                    status = await operation.locator("output").text_content()
                    return f"{status} {await operation.locator('pre').text_content()}"

                assert "HTTP 401" in await tried("/health", "GET")
                await page.fill("#token", "the-token")
                await page.reload()
                await page.wait_for_selector("details")
                await page.fill("#token", "the-token")
                assert "HTTP 200" in await tried("/health", "GET")
                found = await tried("/api/orders/{task_id}", "GET")
                assert "HTTP 200" in found
                assert "taken over" in found
                assert '"created":true' in await tried("/api/orders", "POST"), "the example can be sent as it stands"
                assert await page.title() == "order-gateway: try the JSON contract"
            finally:
                await browser.close()
        assert foreign == []
        assert [fault for fault in faults if "401" not in fault] == []


async def test_the_page_opens_with_the_credentials_in_its_address(tmp_path: Path) -> None:
    """What curl and some links do: http://name:token@host/docs. fetch refuses relative addresses then."""
    async with (
        running_gateway(tmp_path, token="the-token", api_token=("the-token",)) as gateway,
        async_playwright() as playwright,
    ):
        browser = await playwright.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
        try:
            page = await browser.new_page()
            await page.goto(f"http://me:the-token@127.0.0.1:{gateway.http_port}/docs")
            await page.wait_for_selector("details", timeout=20_000)
        finally:
            await browser.close()
