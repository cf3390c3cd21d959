"""Each page, full of what can be on it: no complaint of the browser, readable by all, on any screen."""

from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.gateway.console.chromium.accessible import serious_findings
from tests.gateway.console.chromium.window import NARROW, WIDE, window
from tests.gateway.console.test_every_page import SHOWN, addresses, full_console

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.asyncio(loop_scope="module")]


@pytest.mark.parametrize(("width", "dark"), [(NARROW, False), (WIDE, False), (WIDE, True)])
async def test_every_page(chromium: Browser, tmp_path: Path, width: int, dark: bool) -> None:
    async with (
        full_console(tmp_path) as (gateway, _),
        window(chromium, gateway.http_port, width=width, dark=dark) as seen,
    ):
        await seen.go()
        assert await serious_findings(seen.page) == []
        await seen.sign_in()
        for path in addresses():
            await seen.go(path)
            assert await seen.is_as_wide_as_its_window(), path
            assert await serious_findings(seen.page) == [], path
            # With all forms open as well, which is when they are filled in.
            await seen.page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
            assert await seen.is_as_wide_as_its_window(), path
            assert await serious_findings(seen.page) == [], path


async def test_hostile_text_is_text(chromium: Browser, tmp_path: Path) -> None:
    async with full_console(tmp_path) as (gateway, _), window(chromium, gateway.http_port) as seen:
        await gateway.api.submit(
            "po-9", intent_json=f'{{"note":"<script>document.title=1</script>","text":"{"日" * 80_000}"}}'
        )
        await seen.go()
        await seen.sign_in()
        for path in (*addresses(), "/console/tasks/po-9"):
            await seen.go(path)
            assert (await seen.page.title()).endswith("order-gateway"), path
            assert await seen.page.locator("main img, main script, main b").count() == 0, path
        assert (await seen.reads("pre.json")).count("日") == 80_000
        await seen.go("/console/tasks/po-1")
        assert SHOWN in await seen.reads()


async def test_what_the_policy_forbids_is_complained_of(chromium: Browser, tmp_path: Path) -> None:
    """The check of the others: a violation does not go by unseen."""
    expected = ["Content Security Policy"]
    async with full_console(tmp_path) as (gateway, _), window(chromium, gateway.http_port, expected=expected) as seen:
        await seen.go()
        await seen.page.evaluate(
            "() => { const s = document.createElement('script'); s.textContent = 'document.title=1';"
            " document.body.append(s); }"
        )
        assert any("script-src" in text for text in seen.complaints)
