"""`order-worker evidence serve` on real sockets: who is let in, what is shown, and what is not."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.worker.evidence_page.served import PICTURE, Kept, Served, serving
from worker.evidence.store import Step
from worker.evidence_page import connection
from worker.evidence_page.pages import MAX_SOURCE_IN_FRAME_BYTES
from worker.journal.records import EvidenceFile
from worker.sites.page_reader import PageReader

PAGE = "<!doctype html><title>確認</title><h1>合計 2,900 円</h1>".encode()


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    made = Kept(tmp_path / "evidence")
    made.keep(b"<h1>cart</h1>", Step.CART_ADD)
    made.keep(PAGE)
    return made


@pytest.fixture
async def served(kept: Kept) -> AsyncIterator[Served]:
    async with asyncio.timeout(60), serving(kept) as running:
        yield running


async def test_what_was_kept_is_listed_and_shown(served: Served) -> None:
    async with served.client() as client:
        index = (await client.get("")).text
        for words in (
            "po-1/01-cart-add",
            "po-1/03-order-confirm",
            "2026-11-30T01:02:03",
            "https://shop.example/confirm",
        ):
            assert words in index, words
        assert "NOT INTACT" not in index
        page = (await client.get("1")).text
        assert page.count("yes</td>") == 3
        assert '<iframe sandbox src="1/inert"' in page
        assert (await client.get("1/picture")).content == PICTURE
        assert "合計 2,900 円" in (await client.get("1/inert")).text
        assert (await client.get("1/source")).text == PAGE.decode()
        assert (await client.get("1/source")).headers["content-type"] == "text/plain; charset=utf-8"


async def test_only_loopback_is_listened_on(served: Served) -> None:
    port = int(served.origin.rpartition(":")[2])
    own = [each.laddr for each in psutil.Process().net_connections("inet") if each.status == psutil.CONN_LISTEN]
    assert [(address.ip, address.port) for address in own if address.port == port] == [("127.0.0.1", port)]


async def test_without_its_key_nothing_is_told(served: Served) -> None:
    key = served.url.rstrip("/").rpartition("/")[2]
    assert len(key) == 43
    async with httpx.AsyncClient(trust_env=False) as client:
        for path in ("", "/", "/0", "/style.css", f"/{key[:-1]}/", f"/{key}x/", f"//{key}/", f"/x/{key}/", "/%2e%2e/"):
            answer = await client.get(served.origin + path)
            assert answer.status_code == 404, path
            assert "po-1" not in answer.text
            assert key not in answer.text


@pytest.mark.parametrize(
    "hosts",
    [("evil.example",), ("evil.example:{port}",), ("127.0.0.1",), ("127.0.0.1:1",), (), ("127.0.0.1:{port}", "evil")],
    ids=str,
)
async def test_a_name_that_was_bent_to_this_machine_is_refused(served: Served, hosts: tuple[str, ...]) -> None:
    port = served.origin.rpartition(":")[2]
    lines = "".join(f"Host: {host.format(port=port)}\r\n" for host in hosts)
    path = served.url.removeprefix(served.origin)
    assert (await _raw(int(port), f"GET {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n"))[:1] == b"4", hosts


async def test_localhost_is_this_machine_too(served: Served) -> None:
    async with served.client() as client:
        for host in (served.origin.removeprefix("http://"), served.origin.replace("http://127.0.0.1", "localhost")):
            assert (await client.get("", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_page_of_another_site_sends_nobody_here(served: Served, site: str) -> None:
    async with served.client() as client:
        assert (await client.get("", headers={"Sec-Fetch-Site": site})).status_code == 403


async def test_it_can_only_be_looked_at(served: Served) -> None:
    async with served.client() as client:
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
            assert (await client.request(method, "")).status_code == 405
        assert (await client.head("")).status_code == 200


async def test_every_answer_has_its_policy(served: Served) -> None:
    async with served.client() as client:
        for path in ("", "0", "1/inert", "1/source", "1/picture", "style.css", "99", "../nothing"):
            headers = (await client.get(path)).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy, path
            assert "script-src" not in policy
            assert policy.startswith("sandbox; ") is path.endswith(("inert", "source", "picture")), path
            assert (headers["referrer-policy"], headers["cache-control"]) == ("no-referrer", "no-store")
            assert headers["x-content-type-options"] == "nosniff"


async def test_the_page_itself_is_shown_in_its_frame_alone(served: Served) -> None:
    async with served.client() as client:
        assert (await client.get("1/inert", headers={"Sec-Fetch-Dest": "document"})).status_code == 404
        assert (await client.get("1/inert", headers={"Sec-Fetch-Dest": "iframe"})).status_code == 200


@pytest.mark.parametrize("spoilt", ["changed", "longer", "gone", "a link", "a pipe"])
async def test_what_is_no_longer_what_was_written_is_not_shown(kept: Kept, served: Served, spoilt: str) -> None:
    path = kept.root / "po-1/03-order-confirm.html"
    elsewhere = kept.root / "elsewhere"
    elsewhere.write_bytes(PAGE)
    match spoilt:
        case "changed":
            path.write_bytes(PAGE.replace(b"2,900", b"1,900"))
        case "longer":
            path.write_bytes(PAGE + b" ")
        case _:
            path.unlink()
    if spoilt == "a link":
        path.symlink_to(elsewhere)
    if spoilt == "a pipe":
        os.mkfifo(path)
    async with served.client() as client:
        assert (await client.get("")).text.count("NOT INTACT") == 1
        page = (await client.get("1")).text
        assert "NO: gone, or changed since" in page
        assert "<iframe" not in page
        for part in ("inert", "source"):
            assert (await client.get(f"1/{part}")).status_code == 404


async def test_no_path_of_the_browser_leads_to_a_file(kept: Kept, served: Served) -> None:
    (kept.root / "secret").write_text("secret words")
    (kept.root.parent / "secret").write_text("secret words")
    key = served.url.removeprefix(served.origin)
    for path in (
        "secret",
        "../secret",
        "%2e%2e/secret",
        "..%2fsecret",
        "po-1/03-order-confirm.html",
        "-1",
        "1/../../secret",
    ):
        answer = await _raw(int(served.origin.rpartition(":")[2]), (
            f"GET {key}{path} HTTP/1.1\r\nHost: {served.origin.removeprefix('http://')}\r\nConnection: close\r\n\r\n"
        ))  # fmt: skip
        assert answer[:3] == b"404", path
        assert b"secret words" not in answer


async def test_what_is_kept_meanwhile_is_there_at_the_next_look(kept: Kept, served: Served) -> None:
    kept.keep(b"<h1>submit</h1>", Step.ORDER_SUBMIT, url='https://shop.example/"><script>x</script>\u202e\u2028')
    async with served.client() as client:
        index = (await client.get("")).text
        assert "po-1/04-order-submit" in index
        assert "<script>" not in index
        page = (await client.get("2")).text
        assert "<script>" not in page
        assert not {"\u202e", "\u2028"} & set(index + page)
        assert "\\u202e\\u2028" in page


@pytest.mark.parametrize(
    "html",
    [
        "".join(f"<i id=a{number}><p>" for number in range(2_000)),  # 29 KB, of which a parser makes 34 MB
        "<p>" * 700_000,
    ],
    ids=["every i again in every p", "more than an answer holds"],
)
async def test_a_page_that_grows_too_large_is_shown_as_text(kept: Kept, served: Served, html: str) -> None:
    kept.keep(html.encode(), Step.ORDER_SUBMIT)
    async with served.client() as client:
        answer = await client.get("2/inert")
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        told, _, source = answer.text.partition("\n\n")
        assert told.startswith("Too large to show, or made to deceive (")
        assert source == html[:MAX_SOURCE_IN_FRAME_BYTES]
        assert (await client.get("2/source")).text == html
        assert "合計 2,900 円" in (await client.get("1/inert")).text, "the next page is shown again"


@pytest.mark.parametrize("charset", ["undefined", "idna", "punycode", "unicode_escape", "no-such"])
async def test_a_charset_that_is_none_hides_no_page(kept: Kept, served: Served, charset: str) -> None:
    html = f"<meta charset={charset}><h1>\\ud800 合計 2,900 円</h1>"
    kept.keep(html.encode(), Step.ORDER_SUBMIT)
    async with served.client() as client:
        assert "\\ud800 合計 2,900 円" in (await client.get("2/inert")).text
        assert (await client.get("2/source")).text == html


@pytest.mark.parametrize("head", ["", "GET / HTTP/1.1\r\nHost: x\r\nX: "], ids=["nothing", "half a head"])
async def test_who_says_nothing_is_dropped(served: Served, monkeypatch: pytest.MonkeyPatch, head: str) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.3)
    port = int(served.origin.rpartition(":")[2])
    # More than there are places, and each is waited for until it is dropped.
    assert await asyncio.gather(*(_until_dropped(port, head) for _ in range(40))) == [b""] * 40
    async with served.client() as client:
        assert (await client.get("")).status_code == 200


async def test_who_has_asked_in_time_may_wait_for_longer(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_SECONDS", 0.3)

    async def read_slowly() -> list[EvidenceFile]:
        await asyncio.sleep(2 * connection.HEAD_SECONDS)
        return kept.index

    monkeypatch.setattr(kept, "read_index", read_slowly)
    async with asyncio.timeout(60), serving(kept) as served, served.client() as client:
        assert (await client.get("")).status_code == 200


async def test_a_request_without_the_key_keeps_no_connection(served: Served) -> None:
    host = served.origin.removeprefix("http://")
    answer = await _raw(int(host.rpartition(":")[2]), f"POST / HTTP/1.1\r\nHost: {host}\r\nContent-Length: 9\r\n\r\n1")
    assert answer[:3] == b"404"
    assert b"\r\nconnection: close\r\n" in answer.lower()


async def test_a_port_that_is_taken_is_told(kept: Kept) -> None:
    from worker.evidence_page.pages import EvidencePages  # noqa: PLC0415
    from worker.evidence_page.server import serve  # noqa: PLC0415

    with socket.create_server(("127.0.0.1", 0)) as taken:
        pages = EvidencePages("po-1", kept.root, kept.read_index, PageReader())
        with pytest.raises(OSError, match="in use"):
            await serve(pages, taken.getsockname()[1], asyncio.Event(), print)


async def _until_dropped(port: int, head: str) -> bytes:
    """Send the beginning of a request; return what comes back until the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(head.encode())
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def _raw(port: int, request: str) -> bytes:
    """Send bytes as they are; return the answer from its status on."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request.encode())
    answer = await reader.read()
    writer.close()
    return answer.removeprefix(b"HTTP/1.1 ")
