"""Screenshots: real pictures by a real browser that touches no network, and a reason where there is none."""

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from worker.evidence import screenshots
from worker.evidence.screenshots import Screenshots, find_chromium
from worker.sites.port import Page

PAGE = "<!DOCTYPE html><html><body><h1>ご注文内容の確認</h1><p>12,800円</p></body></html>".encode()

needs_browser = pytest.mark.needs("chromium")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def camera() -> AsyncIterator[Screenshots]:
    """One browser for all: starting it is what takes time."""
    shots = Screenshots(timeout_seconds=30)
    yield shots
    await shots.close()


def size_of(png: bytes | None) -> tuple[int, int]:
    assert png is not None
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def running_browsers() -> set[psutil.Process]:
    """The browsers of this process, without their helpers, which have a --type."""
    browsers = set()
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            command = child.cmdline()
            if "--headless" in command and not any(part.startswith("--type") for part in command):
                browsers.add(child)
    return browsers


@pytest.mark.needs("chromium", "fonts")
@pytest.mark.asyncio(loop_scope="module")
async def test_a_page_becomes_a_picture_with_its_text(camera: Screenshots) -> None:
    png = await camera.capture(PAGE, "http://shop.example/order/confirm")
    assert camera.unavailable_reason is None
    width, height = size_of(png)
    assert width == 1100
    assert 100 <= height <= 1000
    empty = await camera.capture(b"<!DOCTYPE html><html><body></body></html>", "")
    assert png is not None
    assert empty is not None
    assert len(png) > len(empty) + 1000
    assert await camera.take(Page("", "GET", 200, PAGE)) == (png, "")


@pytest.mark.extended
@needs_browser
@pytest.mark.asyncio(loop_scope="module")
async def test_large_pages_are_cut(camera: Screenshots) -> None:
    html = b"<body><div style='width:50000px;height:90000px;background:linear-gradient(red,blue)'></div></body>"
    assert size_of(await camera.capture(html, "")) == (2200, 6000)


@needs_browser
@pytest.mark.asyncio(loop_scope="module")
async def test_a_page_that_wants_to_move_on_stays(camera: Screenshots) -> None:
    moving = b"<meta http-equiv='refresh' content='0; url=http://127.0.0.1:9/'>" + PAGE
    still = b"<meta name='nothing' content='0; url=http://127.0.0.1:9/'>" + PAGE
    assert await camera.capture(moving, "") == await camera.capture(still, "")


@pytest.mark.extended
@needs_browser
@pytest.mark.asyncio(loop_scope="module")
async def test_no_network_is_touched(camera: Screenshots) -> None:
    connections = 0

    def connected(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    here = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    html = f"""<!DOCTYPE html><html><head>
    <base href="{here}/">
    <meta http-equiv="refresh" content="0; url={here}/refresh">
    <link rel="stylesheet" href="{here}/style.css"><link rel="icon" href="{here}/icon.png">
    <link rel="preconnect" href="{here}"><link rel="dns-prefetch" href="{here}"><link rel="prefetch" href="{here}/next">
    <link rel="preload" as="image" href="{here}/preload.png">
    <style>@import url({here}/import.css); @font-face {{ font-family: f; src: url({here}/font.woff2); }}
    body {{ font-family: f; background: url({here}/background.png); }}</style>
    <script>fetch("{here}/fetch"); new Image().src = "{here}/script.png"; document.title = "ran"</script>
    </head><body onload="fetch('{here}/onload')"><p>text</p>
    <img src="{here}/a.png" srcset="{here}/b.png 2x"><iframe src="{here}/frame"></iframe>
    <object data="{here}/object"></object><embed src="{here}/embed"><video src="{here}/v.mp4" autoplay></video>
    <svg><image href="{here}/svg.png"/></svg><form action="{here}/form"><input autofocus></form></body></html>"""
    size_of(await camera.capture(html.encode(), f"{here}/order"))
    assert connections == 0
    reader, writer = await asyncio.open_connection("127.0.0.1", server.sockets[0].getsockname()[1])
    await reader.read()
    writer.close()
    assert connections == 1
    server.close()
    await server.wait_closed()


@needs_browser
@pytest.mark.asyncio(loop_scope="module")
async def test_scripts_do_not_run(camera: Screenshots) -> None:
    plain = b"<body><h1>A</h1></body>"
    scripted = b"<body><h1>A</h1><script>document.body.innerHTML = '<h1>changed</h1>'.repeat(9)</script></body>"
    assert await camera.capture(scripted, "") == await camera.capture(plain, "")


@pytest.mark.extended
@needs_browser
@pytest.mark.asyncio(loop_scope="module")
async def test_odd_bytes_are_drawn(camera: Screenshots) -> None:
    for html in (b"", b"\x00\xff\xfe<", "<meta charset=euc-jp>注文".encode("euc-jp"), b"<" * 10_000):
        size_of(await camera.capture(html, ""))


@pytest.mark.extended
@needs_browser
@pytest.mark.asyncio(loop_scope="module")
async def test_a_dead_browser_is_replaced(camera: Screenshots) -> None:
    await camera.capture(PAGE, "")
    browsers = running_browsers()
    assert browsers
    for browser in browsers:
        browser.kill()
    await asyncio.to_thread(psutil.wait_procs, browsers, 10)
    size_of(await camera.capture(PAGE, ""))


@needs_browser
@pytest.mark.extended
async def test_a_frozen_browser_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screenshots, "CLOSE_SECONDS", 1)
    shots = Screenshots(timeout_seconds=20)
    others = running_browsers()
    try:
        await shots.capture(PAGE, "")
        (browser,) = running_browsers() - others
        browser.suspend()
        shots._timeout = 1
        assert await asyncio.wait_for(shots.capture(PAGE, ""), 60) is None
        assert shots.unavailable_reason == "the browser took longer than 1 s"
        _, alive = await asyncio.to_thread(psutil.wait_procs, [browser], 10)
        assert not alive
        shots._timeout = 20
        size_of(await shots.capture(PAGE, ""))
    finally:
        await shots.close()


@needs_browser
async def test_too_slow_is_no_picture(caplog: pytest.LogCaptureFixture) -> None:
    hasty = Screenshots(timeout_seconds=0.01)
    assert await hasty.capture(PAGE, "http://shop.example/") is None
    assert hasty.unavailable_reason == "the browser took longer than 0.01 s"
    assert "no screenshot" in caplog.text
    await hasty.close()


async def test_too_large_is_no_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is too large is turned away before a browser is looked for."""
    monkeypatch.setattr(screenshots, "PLAYWRIGHT_INSTALLED", True)
    shots = Screenshots(executable="/usr/bin/true")
    assert await shots.capture(b"x" * (screenshots.MAX_HTML_BYTES + 1), "") is None
    assert "larger than" in (shots.unavailable_reason or "")


async def test_without_a_browser_there_is_a_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(screenshots, "EXECUTABLES", ())
    monkeypatch.setattr(screenshots, "KNOWN_PATHS", (str(tmp_path / "chromium"),))
    assert find_chromium() is None
    png, reason = await Screenshots().take(Page("", "GET", 200, PAGE))
    assert png is None
    expected = "no Chromium or Chrome was found" if screenshots.PLAYWRIGHT_INSTALLED else "Playwright is not installed"
    assert expected in reason


async def test_without_playwright_there_is_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screenshots, "PLAYWRIGHT_INSTALLED", False)
    png, reason = await Screenshots(executable="/usr/bin/true").take(Page("", "GET", 200, PAGE))
    assert png is None
    assert "Playwright is not installed" in reason


@needs_browser
async def test_a_program_that_is_no_browser() -> None:
    shots = Screenshots(executable="/bin/false", timeout_seconds=60)
    assert await shots.capture(PAGE, "") is None
    assert (shots.unavailable_reason or "").startswith("the browser failed: ")
    await shots.close()
