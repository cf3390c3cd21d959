"""Hostile evidence, in a real browser: no script runs, and nobody else is reached."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import async_playwright
from selectolax.lexbor import LexborHTMLParser

from tests.worker.evidence_page.served import Kept, serving
from worker.evidence.screenshots import find_chromium
from worker.evidence_page.inert import inert
from worker.sites.port import PageChangedError

HOSTILE = """<!doctype html>
<html><head>
<meta charset="utf-8"><title>a shop</title>
<base href="{elsewhere}/base/">
<meta http-equiv="refresh" content="0;url={elsewhere}/refresh">
<meta http-equiv="Content-Security-Policy" content="default-src * 'unsafe-inline'">
<link rel="preconnect" href="{elsewhere}"><link rel="dns-prefetch" href="{elsewhere}">
<link rel="prefetch" href="{elsewhere}/prefetch"><link rel="preload" as="image" href="{elsewhere}/preload">
<link rel="stylesheet" href="{elsewhere}/style"><link rel="icon" href="{elsewhere}/icon">
<link rel="manifest" href="{elsewhere}/manifest"><link rel="modulepreload" href="{elsewhere}/module">
<style>@import url({elsewhere}/import); @font-face {{ font-family: f; src: url({elsewhere}/font) }}
body {{ font-family: f; background: url({elsewhere}/background); color: rgb(1, 2, 3) }}</style>
<script>top.document.title = 'taken over'; new Image().src = '{elsewhere}/script';</script>
<script src="{elsewhere}/script.js"></script><script type="module">import '{elsewhere}/module.js'</script>
</head>
<body onload="fetch('{elsewhere}/onload')" background="{elsewhere}/attribute">
<h1 id="shown">合計 2,900 円</h1>
<img src="{elsewhere}/image" srcset="{elsewhere}/srcset 2x"><img src="x" onerror="fetch('{elsewhere}/onerror')">
<img id="inline" src="data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==">
<picture><source srcset="{elsewhere}/source"><img src="{elsewhere}/picture"></picture>
<svg><script>top.name = 'taken over'</script><image href="{elsewhere}/svg" xlink:href="{elsewhere}/xlink"/>
<use href="{elsewhere}/use#x"/><animate onbegin="fetch('{elsewhere}/svg-event')"/></svg>
<iframe src="{elsewhere}/frame"></iframe><iframe srcdoc="<img src={elsewhere}/srcdoc>"></iframe>
<object data="{elsewhere}/object"></object><embed src="{elsewhere}/embed">
<video src="{elsewhere}/video" poster="{elsewhere}/poster" autoplay></video>
<audio src="{elsewhere}/audio" autoplay></audio>
<form id="form" action="{elsewhere}/form" method="post"><input type="image" src="{elsewhere}/input">
<button id="button" formaction="{elsewhere}/button">Pay</button></form>
<a id="link" href="{elsewhere}/link" target="_top" ping="{elsewhere}/ping">away</a>
<a id="script" href="javascript:top.location='{elsewhere}/javascript'">script</a>
<noscript><img src="{elsewhere}/noscript">
<meta http-equiv="refresh" content="0;url={elsewhere}/noscript-refresh"></noscript>
<template shadowrootmode="open"><img src="{elsewhere}/template"></template>
<math><mtext><img src="{elsewhere}/math" onerror=alert(1)></mtext></math>
<p style="background: url({elsewhere}/inline-style)">styled</p>
</body></html>"""


class Elsewhere:
    """Another host. It counts who so much as connects."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.reached = 0
        self.was_reached = asyncio.Event()


@asynccontextmanager
async def elsewhere() -> AsyncIterator[Elsewhere]:
    async def take(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host.reached += 1
        host.was_reached.set()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    host = Elsewhere(server.sockets[0].getsockname()[1])
    async with server:
        yield host


@pytest.mark.needs("chromium")
async def test_it_runs_no_script_and_reaches_nobody(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    async with asyncio.timeout(120), elsewhere() as host, async_playwright() as playwright:
        kept.keep(HOSTILE.format(elsewhere=host.url).encode())
        async with serving(kept) as served:
            browser = await playwright.chromium.launch(
                executable_path=find_chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
            try:
                page = await browser.new_page()
                asked, refused = set[str](), set[str]()
                page.on("request", lambda request: asked.add(request.url))
                page.on("requestfailed", lambda request: refused.add(f"{request.failure} {request.url}"))
                await page.goto(f"{served.url}0", wait_until="networkidle")
                frame = page.frames[1]
                assert await frame.locator("#shown").inner_text() == "合計 2,900 円"
                assert await frame.locator("#inline").get_attribute("src") is not None
                await frame.locator("#link").click()
                await frame.locator("#script").click()
                await frame.locator("#button").click()
                await page.wait_for_load_state("networkidle")
                assert await page.title() == "po-1/03-order-confirm: evidence"
                assert page.url == f"{served.url}0"
                assert len(page.context.pages) == 1
                assert frame.url == f"{served.url}0/inert"
                foreign = {url for url in asked if not url.startswith((served.url, "data:"))}
                assert {f"csp {url}" for url in foreign} <= refused, "only what styles name is left to the policy"
                assert host.reached == 0
            finally:
                await browser.close()
        # The host was there all the time: who asks it is counted.
        _, writer = await asyncio.open_connection("127.0.0.1", int(host.url.rpartition(":")[2]))
        await host.was_reached.wait()
        writer.close()


def deceptive(readings: int) -> str:
    """A page whose link is the text of a style sheet, until it has been read and written so many times."""
    page = '<a href="http://shop.example/">GO</a>'
    for _ in range(readings):
        page = f"<form><math><mtext></form><form><mglyph><style></math>{page}"
    return page


def test_no_link_comes_out_of_a_text() -> None:
    shown = inert(deceptive(1))
    assert ">GO</a>" in shown
    assert not LexborHTMLParser(shown).css("[href]")


@pytest.mark.parametrize("readings", [2, 3, 10])
def test_a_page_that_never_comes_to_rest_is_refused(readings: int) -> None:
    with pytest.raises(PageChangedError):
        inert(deceptive(readings))


@pytest.mark.needs("chromium")
async def test_a_browser_finds_no_link_either(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    animated = '<svg><a><animate attributeName="href" values="http://shop.example/"></animate><text>x</text></a></svg>'
    pages = [*map(deceptive, range(5)), animated]
    for page in pages:
        kept.keep(page.encode())
    async with asyncio.timeout(120), async_playwright() as playwright, serving(kept) as served:
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        try:
            page = await browser.new_page()
            for number in range(len(pages)):
                await page.goto(f"{served.url}{number}")
                assert await page.frames[1].locator("[href], animate").count() == 0, pages[number]
        finally:
            await browser.close()


@pytest.mark.parametrize(
    "text", ["<pre>\n\n1", "<p><table><tr><td>1<p>2", "<b><p>1</b>2", "<ul><li>1<li>2", "&amp;lt;a>"]
)
def test_an_ordinary_page_comes_to_rest(text: str) -> None:
    assert inert(text)


def test_what_it_looked_like_is_left() -> None:
    page = inert(
        '<p style="color: red" class="x" onclick="f()">1<a href="/y" title="t">2</a>'
        '<img src="data:image/png;a" alt="i">'
    )
    assert '<p style="color: red" class="x">1<a title="t">2</a><img src="data:image/png;a" alt="i"></p>' in page


@pytest.mark.parametrize(
    "text", ["", "<", "<script", "\x00", "<svg><p><style><!--</style><img src=x onerror=f()>", "a" * 1000]
)
def test_whatever_it_is_given_is_a_page_without_scripts(text: str) -> None:
    page = inert(text)
    assert "<script" not in page
    assert "onerror=" not in page
