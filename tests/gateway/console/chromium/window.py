"""A window of the browser, with everything noted that it complains of."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from playwright.async_api import Browser, ConsoleMessage, Page

from tests.gateway.console.browser import SECRET

PATIENCE_MS: Final = 20_000

WIDE: Final = 1440
NARROW: Final = 360


@dataclass
class Window:
    """A page as somebody has it open. `complaints`: errors and warnings of its console, violations of
    the policy among them, and uncaught ones.
    """

    page: Page
    home: str
    complaints: list[str] = field(default_factory=list)

    async def go(self, path: str = "/console") -> None:
        await self.page.goto(self.home + path)

    async def sign_in(self, token: str = SECRET) -> None:
        """Type the token on the page that asks for it."""
        await self.page.get_by_label("Token").fill(token)
        await self.page.keyboard.press("Enter")
        await self.page.wait_for_selector(".who")

    async def act(self, action: str, *, within: str = "main", **fields: str) -> None:
        """Open the form of an action, fill it in, send it, and wait until the page says that it is done."""
        form = self.page.locator(f"{within} form[action='/console/do/{action}']").first
        await form.locator("xpath=..").locator("summary").click()
        for name, text in fields.items():
            await form.locator(f"[name='{name}']").fill(text)
        await form.locator("button.go").click()
        await self.page.wait_for_selector("[role=alert], .notice.done[role=status]")
        refused = self.page.get_by_role("alert")
        assert await refused.count() == 0, await refused.inner_text()

    async def reads(self, selector: str = "main") -> str:
        return await self.page.locator(selector).first.inner_text()

    async def is_as_wide_as_its_window(self) -> bool:
        """Whether nothing has to be scrolled sideways."""
        found = await self.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        return bool(found)


@asynccontextmanager
async def window(
    browser: Browser, port: int, *, width: int = WIDE, expected: Sequence[str] = (), dark: bool = False
) -> AsyncIterator[Window]:
    """Open a window with no session; nothing but what is `expected` may be complained of in it."""
    context = await browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        locale="en-GB",
        timezone_id="Asia/Tokyo",
    )
    context.set_default_timeout(PATIENCE_MS)
    opened = Window(await context.new_page(), f"http://127.0.0.1:{port}")

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            opened.complaints.append(message.text)

    opened.page.on("console", note)
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    try:
        yield opened
    finally:
        await context.close()
    assert [text for text in opened.complaints if not any(part in text for part in expected)] == []
