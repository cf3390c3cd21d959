"""Screenshots of pages that were already fetched: headless Chromium draws the saved bytes and reaches no network.

Needs Playwright (the `browser` extra) and the system's Chromium. Where either is missing, or drawing fails, there is no
picture and a reason; an order never waits or fails for it.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from worker.evidence.decoding import decode_html
from worker.sites.port import Page

try:
    from playwright.async_api import Error as PlaywrightError
    from playwright.async_api import async_playwright
except ImportError:
    PLAYWRIGHT_INSTALLED = False
else:
    PLAYWRIGHT_INSTALLED = True

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright, Route

_log = logging.getLogger(__name__)

EXECUTABLES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KNOWN_PATHS = (
    "/usr/bin/chromium",
    "/usr/lib/chromium/chromium",
    "/snap/bin/chromium",
    "/opt/google/chrome/chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = (
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Behind the interception of every request: no name resolves, so nothing can be prefetched either.
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
WIDTH_PX = 1100
MAX_WIDTH_PX = 2200
MAX_HEIGHT_PX = 6000
MAX_HTML_BYTES = 4 * 1024 * 1024
MAX_PNG_BYTES = 8 * 1024 * 1024
CLOSE_SECONDS = 5


def find_chromium() -> str | None:
    """Return the system's Chromium or Chrome, None where there is none."""
    on_path = (shutil.which(name) for name in EXECUTABLES)
    known = (path for path in KNOWN_PATHS if os.access(path, os.X_OK) and Path(path).is_file())
    return next((path for path in (*on_path, *known) if path), None)


class Screenshots:
    """Draws pages one at a time in one browser, which is started at the first and again whenever it has died.

    `timeout_seconds` bounds one picture, starting the browser included; ending a browser that hangs may take as long
    again. `unavailable_reason` says why the last picture could not be made, None if it could.
    """

    def __init__(self, *, executable: str | None = None, timeout_seconds: float = 20) -> None:
        self.unavailable_reason: str | None = None
        self._told_reason: str | None = None
        self._executable = executable or find_chromium()
        self._timeout = timeout_seconds
        self._lock = asyncio.Lock()
        self._opening: asyncio.Task[tuple[Playwright, Browser]] | None = None

    async def capture(self, html: bytes, url: str) -> bytes | None:
        """Return the page as PNG, at most 2,200 by 6,000 pixels, or None. Raises nothing of its own.

        `url` is only named in the log, once for each new reason: nothing is fetched from it.
        """
        async with self._lock:
            self.unavailable_reason = self._missing() or _too_large(html)
            if self.unavailable_reason is None:
                try:
                    async with asyncio.timeout(self._timeout):
                        return await self._draw_or_again(decode_html(html))
                except TimeoutError:
                    self.unavailable_reason = f"the browser took longer than {self._timeout:g} s"
                except Exception as error:  # noqa: BLE001 - a picture is never worth an order
                    first_line = (str(error).splitlines() or [""])[0]
                    self.unavailable_reason = f"the browser failed: {type(error).__name__}: {first_line}"[:300]
                await self._stop()
            if self.unavailable_reason != self._told_reason:
                _log.warning("no screenshot", extra={"url": url, "reason": self.unavailable_reason})
                self._told_reason = self.unavailable_reason
            return None

    async def take(self, page: Page) -> tuple[bytes | None, str]:
        """(PNG, "") or (None, why there is none)."""
        png = await self.capture(page.html, page.url)
        return (png, "") if png is not None else (None, self.unavailable_reason or "no reason given")

    async def close(self) -> None:
        """End the browser."""
        async with self._lock:
            await self._stop()

    def _missing(self) -> str | None:
        if not PLAYWRIGHT_INSTALLED:
            return "Playwright is not installed (the `browser` extra)"
        if self._executable is None:
            return "no Chromium or Chrome was found"
        return None

    async def _draw_or_again(self, text: str) -> bytes:
        """A browser that has died since the last picture is noticed only by using it."""
        try:
            return await self._draw(text)
        except PlaywrightError:
            await self._stop()
            return await self._draw(text)

    async def _draw(self, text: str) -> bytes:
        browser = await self._running_browser()
        context = await browser.new_context(
            java_script_enabled=False,
            offline=True,
            service_workers="block",
            accept_downloads=False,
            viewport={"width": WIDTH_PX, "height": 800},
            locale="ja-JP",
        )
        try:
            await context.route("**/*", _refuse)
            page = await context.new_page()
            await page.set_content(text, wait_until="domcontentloaded")
            size = await page.evaluate("(root => [root.scrollWidth, root.scrollHeight])(document.documentElement)")
            width, height = min(size[0], MAX_WIDTH_PX), min(size[1], MAX_HEIGHT_PX)
            png = await page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": width, "height": height})
        finally:
            await _closed(context.close)
        if len(png) > MAX_PNG_BYTES:
            raise ValueError(f"the picture is larger than {MAX_PNG_BYTES} bytes")
        return png

    async def _running_browser(self) -> "Browser":
        if self._opening is None or not _is_usable(self._opening):
            await self._stop()
            self._opening = asyncio.create_task(self._open())
        # Shielded: breaking off in the middle of the start would leave a process that nobody knows.
        return (await asyncio.shield(self._opening))[1]

    async def _open(self) -> "tuple[Playwright, Browser]":
        playwright = await async_playwright().start()
        try:
            browser = await playwright.chromium.launch(
                executable_path=self._executable,
                args=[*FLAGS, "--no-sandbox"] if _is_root() else [*FLAGS],
                timeout=self._timeout * 1000,
                handle_sigint=False,
                handle_sigterm=False,
                handle_sighup=False,
            )
        except BaseException:
            await playwright.stop()
            raise
        return playwright, browser

    async def _stop(self) -> None:
        opening, self._opening = self._opening, None
        if opening is None:
            return
        await asyncio.wait({opening}, timeout=CLOSE_SECONDS)
        if not opening.done():
            opening.cancel()
            await asyncio.wait({opening}, timeout=CLOSE_SECONDS)
        if not opening.done() or opening.cancelled() or opening.exception():
            return
        playwright, browser = opening.result()
        for close in (browser.close, playwright.stop):
            await _closed(close)


async def _closed(close: Callable[[], Awaitable[None]]) -> None:
    """Close something that may be dead or hang already."""
    with suppress(Exception):
        async with asyncio.timeout(CLOSE_SECONDS):
            await close()


def _is_usable(opening: "asyncio.Task[tuple[Playwright, Browser]]") -> bool:
    """Return True if the browser is being started, or runs as far as is known."""
    if not opening.done():
        return True
    return not opening.cancelled() and not opening.exception() and opening.result()[1].is_connected()


def _too_large(html: bytes) -> str | None:
    return f"the page is larger than {MAX_HTML_BYTES} bytes" if len(html) > MAX_HTML_BYTES else None


def _is_root() -> bool:
    return hasattr(os, "geteuid") and os.geteuid() == 0


async def _refuse(route: "Route") -> None:
    # "aborted" is the one refusal after which a page that wants to move on stays where it is.
    await route.abort("aborted")
