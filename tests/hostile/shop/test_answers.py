"""Answers that are wrong before anybody reads the page: where they lead, how they are framed, what they bring along.

Each is an error of the site, with which `execution` knows how to end an order; none is a fault of this program, none
costs more memory or time than the limits say, and no request goes anywhere else.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import httpx
import pytest

from tests.hostile.shop.tampering_shop import Answer, Tamper, TamperingShop
from tests.worker.running_shop import no_look
from worker.sites.port import Item, LoggedOutError, PageChangedError, SiteError
from worker.sites.sandbox.adapter import SandboxSite

SITE_FAILED = (SiteError, httpx.HTTPError, OSError)

ELSEWHERE = [
    "http://other.example/order/thanks",
    "https://{host}/order/thanks",
    "//other.example/",
    "///other.example/",
    r"http:\\other.example",
    r"\\other.example",
    r"/\other.example",
    r"/cart\..\..",
    "http://{host}@other.example/",
    "http://other.example#{host}",
    "http://{host}.other.example/",
    "http://[::1",
    "http://[v1.fe]/",
    "http://{host}:99999/",
    "javascript:x",
    "javascript://{host}/%0aalert(1)",
    "data:text/html,x",
    "file:///etc/passwd",
    "mailto:a@b.example",
    "ftp://{host}/cart",
    "about:blank",
    "/cart with spaces",
    "/かご",
    "/cart\x00",
    "/" + "a" * 2_000,
    "",
]


@pytest.mark.parametrize("status", [301, 303])
async def test_a_redirect_to_anywhere_else_is_an_error_of_the_site(
    shop: TamperingShop, site: SandboxSite, status: int
) -> None:
    host = shop.url.removeprefix("http://")
    for location in (text.format(host=host) for text in ELSEWHERE):

        def tamper(answer: Answer, location: str = location) -> Answer:
            return replace(answer.with_header("location", location), status=status)

        shop.arm("POST", "/cart/add", tamper)
        with pytest.raises((SiteError, httpx.RemoteProtocolError)):
            pytest.fail(
                f"{location!r} is followed to {(await site.add_to_cart(Item(shop.item_url('sencha-100g')))).url}"
            )
    paths = {path for _, path in shop.seen}
    assert paths <= {"/login", "/item/sandbox-store/sencha-100g/", "/cart/add"}


async def test_a_redirect_within_the_shop_is_followed_from_where_it_stands(
    shop: TamperingShop, site: SandboxSite
) -> None:
    await site.add_to_cart(Item(shop.item_url("sencha-100g")))
    for location in (
        "/cart",
        "/cart?x=1#y",
        f"{shop.url}/cart",
        "../cart",
        "//" + shop.url.removeprefix("http://") + "/cart",
    ):
        shop.arm("POST", "/cart/add", lambda answer, to=location: answer.with_header("location", to))  # type: ignore[misc]
        page = await site.add_to_cart(Item(shop.item_url("sencha-100g")))
        assert page.url.startswith(f"{shop.url}/cart"), location


async def test_redirects_are_followed_once(shop: TamperingShop, site: SandboxSite) -> None:
    shop.arm("GET", "/cart", lambda answer: replace(answer, status=302).with_header("location", "/cart"))
    with pytest.raises(PageChangedError, match="instead of /cart the shop shows /cart"):
        await site.add_to_cart(Item(shop.item_url("sencha-100g")))
    assert shop.seen.count(("GET", "/cart")) == 1


@pytest.mark.parametrize("status", [307, 308])
async def test_an_order_is_never_sent_again_because_the_shop_says_so(
    shop: TamperingShop, site: SandboxSite, status: int
) -> None:
    await site.add_to_cart(Item(shop.item_url("sencha-100g")))
    confirmation = await site.open_confirmation({})
    shop.arm(
        "POST", "/order/submit", lambda answer: replace(answer, status=status).with_header("location", "/order/submit")
    )
    with pytest.raises(SiteError, match=f"wants a form sent again .HTTP {status}."):
        await site.submit(confirmation, no_look)
    assert (await shop.control.counters())["submits_received"] == 1


@pytest.mark.parametrize("location", ["javascript:x", r"http:\\other.example", "http://[::1", "//other.example/"])
async def test_a_wrong_redirect_from_the_order_is_an_error_of_the_site_that_keeps_its_page(
    shop: TamperingShop, site: SandboxSite, location: str
) -> None:
    await site.add_to_cart(Item(shop.item_url("sencha-100g")))
    confirmation = await site.open_confirmation({})
    shop.arm("POST", "/order/submit", lambda answer: answer.with_header("location", location))
    with pytest.raises(SiteError, match="sends the visitor to another site") as error:
        await site.submit(confirmation, no_look)
    assert error.value.page is not None
    assert (await shop.control.counters())["orders_placed"] == 1


FORM = '<form id="order-form" method="post" action="/order/submit">'
TOKEN = '<input type="hidden" name="token"'
BUTTON = '<button type="submit">注文'

FORMS: list[tuple[str, str, str]] = [
    ("to another site", FORM, FORM.replace("/order", "http://other.example/order")),
    ("to another scheme", FORM, FORM.replace("/order/submit", "https:///order/submit")),
    ("to another host by two slashes", FORM, FORM.replace("/order", "//other.example/order")),
    ("to another host by backslashes", FORM, FORM.replace("/order", r"\\other.example/order")),
    ("to a script", FORM, FORM.replace("/order/submit", "javascript:x")),
    ("to no address", FORM, FORM.replace("/order/submit", "http://[::1")),
    ("to nowhere", FORM, FORM.replace(' action="/order/submit"', "")),
    ("to the page itself", FORM, FORM.replace("/order/submit", "")),
    ("by a base", "<head>", '<head><base href="http://other.example/">'),
    ("by a button", BUTTON, BUTTON.replace(">", ' formaction="http://other.example/">')),
    ("by a button of a name", BUTTON, BUTTON.replace(">", ' name="insurance" value="yes">')),
    ("with GET", FORM, FORM.replace("post", "get")),
    ("with no method", FORM, FORM.replace(' method="post"', "")),
    ("in a dialogue", FORM, FORM.replace("post", "dialog")),
    ("as another type", FORM, FORM.replace(">", ' enctype="multipart/form-data">')),
    ("into another window", FORM, FORM.replace(">", ' target="other">')),
    ("without its token", TOKEN, TOKEN.replace("token", "other")),
    ("with an empty token", TOKEN, TOKEN + ' value=""'),
    ("with two tokens", TOKEN, f'{TOKEN} value="x">{TOKEN}'),
    ("with a disabled token", TOKEN, TOKEN + " disabled"),
    ("with a field more", TOKEN, f'<input type="hidden" name="quantity" value="5">{TOKEN}'),
    ("with a box ticked", TOKEN, f'<input type="checkbox" name="insurance" checked>{TOKEN}'),
    ("with a text to fill in", TOKEN, f'<textarea name="note">x</textarea>{TOKEN}'),
    ("with a field from elsewhere", "<h1>", '<input type="hidden" form="order-form" name="x" value="y"><h1>'),
    ("with a field that it was left open for", BUTTON, f'<input type="hidden" name="x" value="y">{BUTTON}'),
    ("left open in a part", FORM, f'<div>{FORM}</div><input type="hidden" name="gift" value="5">'),
    ("left open in a table", FORM, f"<table><tr>{FORM}</tr></table>"),
    ("with a button elsewhere", "<h1>", '<button type="submit" name="x">x</button><h1>'),
    ("with its fields disabled", TOKEN, f"<fieldset disabled>{TOKEN}"),
    ("to another path", FORM, FORM.replace("/order/submit", "/account/delete")),
    ("to another path by dots", FORM, FORM.replace("/order/submit", "/order/../account/delete")),
    ("to another path by escaped dots", FORM, FORM.replace("/order/submit", "/order/submit/%2e%2e/other")),
    ("to its path with a query", FORM, FORM.replace("/order/submit", "/order/submit?quantity=5")),
    ("to the payment", FORM, FORM.replace("/order/submit", "/payment")),
    ("twice", FORM, f'{FORM}{TOKEN} value="other"></form>{FORM}'),
    ("beside another", "<h1>", "<form method=post action=/x></form><h1>"),
    ("hidden", FORM, FORM.replace(">", " hidden>")),
    ("perhaps hidden", FORM, FORM.replace(">", ' style="opacity:0">')),
    ("in a template", FORM, "<template>" + FORM),
]


async def test_a_form_that_cannot_be_sent_as_it_must_be_is_found_before_the_click(
    shop: TamperingShop, site: SandboxSite
) -> None:
    await site.add_to_cart(Item(shop.item_url("sencha-100g")))
    assert (await site.open_confirmation({})).form["action"] == "/order/submit"
    for name, old, new in FORMS:
        shop.arm("GET", "/order/confirm", lambda answer, old=old, new=new: answer.edit(old, new))  # type: ignore[misc]
        with pytest.raises(PageChangedError) as error:
            pytest.fail(f"{name}: would be sent as {(await site.open_confirmation({})).form}")
        assert error.value.error_code == 5004, name
    assert shop.behind.shop.requests["submit"] == 0


WRITES = ["/order/submit", "/order/%73ubmit", "/cart/../order/submit", "/payment", "/order/submit?x", "/login"]


@pytest.mark.parametrize("action", WRITES)
async def test_no_form_of_the_cart_can_place_or_pay_an_order(
    shop: TamperingShop, site: SandboxSite, action: str
) -> None:
    item = Item(shop.item_url("sencha-100g"))
    await site.add_to_cart(item)
    shop.arm("GET", "/cart", lambda answer: answer.edit('action="/cart/remove"', f'action="{action}"'))
    shop.arm(
        "GET",
        "/item/sandbox-store/sencha-100g/",
        lambda answer: answer.edit('action="/cart/add"', f'action="{action}"'),
    )
    with pytest.raises(PageChangedError, match="a form that leads to /cart/remove"):
        await site.clear_cart()
    with pytest.raises(PageChangedError, match="a form that leads to /cart/add"):
        await site.add_to_cart(item)
    requests = shop.behind.shop.requests
    assert (requests["submit"], requests["pay"], requests["login"]) == (0, 0, 1)


async def test_a_login_form_that_leads_elsewhere_gets_no_password(shop: TamperingShop, site: SandboxSite) -> None:
    shop.arm("GET", "/login", lambda answer: answer.edit('action="/login"', 'action="http://other.example/login"'))
    with pytest.raises(PageChangedError, match="another site"):
        await site.check_session()
    assert ("POST", "/login") not in shop.seen


@pytest.mark.parametrize("page", ["<p>メンテナンス中</p>", "", "<div id=thanks><p id=order-number></p></div>" * 2])
async def test_an_answer_to_the_order_that_is_neither_thanks_nor_refusal_is_no_order(
    shop: TamperingShop, site: SandboxSite, page: str
) -> None:
    await site.add_to_cart(Item(shop.item_url("sencha-100g")))
    confirmation = await site.open_confirmation({})
    shop.arm("POST", "/order/submit", lambda answer: Answer(200, (("content-type", "text/html"),), page.encode()))
    with pytest.raises(PageChangedError, match="neither takes the order nor refuses it"):
        await site.submit(confirmation, no_look)


async def test_cookies_are_bounded(shop: TamperingShop, site: SandboxSite) -> None:
    flood = tuple(("set-cookie", f"c{number}={'x' * 1_000}; Path=/") for number in range(50))
    shop.arm("GET", "/cart", lambda answer: replace(answer, headers=answer.headers + flood))
    with pytest.raises(SiteError, match="bytes of cookies"):
        await site.read_cart()
    shop.tampers.clear()
    assert (await site.read_cart()).items == ()
    assert len(list(site._http._client.cookies.jar)) == 1


COOKIES: dict[str, tuple[tuple[str, str], ...]] = {
    "many": tuple(("set-cookie", f"a{number}=b") for number in range(2_000)),
    "many of no value": tuple(("set-cookie", f"a{number}=") for number in range(51)),
    "many paths": tuple(("set-cookie", f"a=;path=/{number}") for number in range(51)),
    "long paths": tuple(("set-cookie", f"a=;path=/{number}{'p' * 2_900}") for number in range(20)),
    "one a page": (("set-cookie", "a{page}=b"),),
    "a long path a page": (("set-cookie", f"a=;path=/{{page}}{'p' * 2_900}"),),
}


@pytest.mark.parametrize("name", COOKIES)
async def test_cookies_are_bounded_in_count_and_in_size_with_their_paths(
    shop: TamperingShop, site: SandboxSite, name: str
) -> None:
    def flood(answer: Answer) -> Answer:
        page = str(len(shop.seen))
        headers = tuple((key, value.replace("{page}", page)) for key, value in COOKIES[name])
        return replace(answer, headers=answer.headers + headers)

    async def read_on() -> None:
        for _ in range(60):
            await site.read_cart()

    shop.arm("GET", "/cart", flood)
    with pytest.raises(SiteError, match="bytes of cookies"):
        await read_on()
    assert len(list(site._http._client.cookies.jar)) == 0


IGNORED = {
    "overlong": ("set-cookie", f"a={'b' * 5_000}"),
    "of another kind": ("Set-Cookie2", "a=b; Version=1"),
    "of another kind, burning": ("Set-Cookie2", 'a="' * 20_000),
}


@pytest.mark.parametrize("name", IGNORED)
async def test_cookies_that_no_browser_takes_are_ignored(shop: TamperingShop, site: SandboxSite, name: str) -> None:
    await site.read_cart()
    session = {cookie.name for cookie in site._http._client.cookies.jar}
    shop.arm("GET", "/cart", lambda answer: replace(answer, headers=(*answer.headers, IGNORED[name])))
    assert (await site.read_cart()).items == ()
    assert {cookie.name for cookie in site._http._client.cookies.jar} == session


async def test_a_compressed_page_is_not_unpacked(shop: TamperingShop, site: SandboxSite) -> None:
    bomb = gzip.compress(bytes(100 * 1024 * 1024))
    shop.arm("GET", "/cart", lambda answer: replace(answer, body=bomb).with_header("content-encoding", "gzip"))
    with pytest.raises(SiteError, match="a coding that was not asked for: 'gzip'"):
        await site.read_cart()


async def _endless_body() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n"
    while True:
        yield b"<p>" * 20_000


async def _endless_head() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"x-more: " + b"y" * 1_000 + b"\r\n"


async def _crumbs() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    while True:
        yield b"1\r\na\r\n" * 1_000


async def _short_body() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n<p>"


async def _no_http() -> AsyncIterator[bytes]:
    yield b"SSH-2.0-OpenSSH_9.6\r\n"


async def _two_lengths() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 4\r\n\r\n<p>x"


async def _wrong_chunk() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffffffff\r\nx"


async def _silence() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"
    await asyncio.Event().wait()


async def _early_hints() -> AsyncIterator[bytes]:
    while True:
        yield b"HTTP/1.1 103 E\r\n\r\n" * 1_000


async def _early_hints_slowly() -> AsyncIterator[bytes]:
    while True:
        yield b"HTTP/1.1 103 E\r\n\r\n"
        await asyncio.sleep(0.01)


async def _dripping_head() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n"
    while True:
        yield b"a: b\r\n"
        await asyncio.sleep(0.01)


async def _dripping_body() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\n\r\n"
    while True:
        yield b"<"
        await asyncio.sleep(0.01)


async def _chunk_extensions() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
    while True:
        yield b"1;" + b"a" * 60_000 + b"\r\na\r\n"


async def _trailers() -> AsyncIterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n"
    while True:
        yield b"x: y\r\n" * 1_000


async def _blank_lines() -> AsyncIterator[bytes]:
    while True:
        yield b"\r\n" * 10_000


STREAMS: list[Callable[[], AsyncIterator[bytes]]] = [
    _endless_body,
    _endless_head,
    _crumbs,
    _short_body,
    _no_http,
    _two_lengths,
    _wrong_chunk,
    _silence,
    _early_hints,
    _early_hints_slowly,
    _dripping_head,
    _dripping_body,
    _chunk_extensions,
    _trailers,
    _blank_lines,
]


@pytest.mark.parametrize("stream", STREAMS, ids=lambda stream: stream.__name__.strip("_"))
async def test_an_answer_that_is_no_answer_is_an_error_of_the_site(
    shop: TamperingShop, stream: Callable[[], AsyncIterator[bytes]]
) -> None:
    site = SandboxSite(shop.url, timeout_seconds=1)
    tamper: Tamper = lambda _answer: stream()  # noqa: E731 -- a row of the table above
    shop.arm("GET", "/cart", tamper)
    begun = asyncio.get_running_loop().time()
    with pytest.raises(SITE_FAILED):
        await site.read_cart()
    assert asyncio.get_running_loop().time() - begun < 30, "three silences of a second, on a busy machine"
    shop.tampers.clear()
    assert (await site.read_cart()).items == ()
    await site.close()


async def test_a_refusal_at_the_login_is_a_logout(shop: TamperingShop, site: SandboxSite) -> None:
    shop.arm("POST", "/login", lambda answer: Answer(200, (), b""))
    with pytest.raises(LoggedOutError):
        await site.read_cart()
