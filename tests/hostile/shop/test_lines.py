"""What a cart and a confirmation page may show as their lines, and what the adapter makes of it.

A row is a name and what is done to the page; one camera is in the cart.
"""
# ruff: noqa: RUF001 -- signs that look alike are what is tested

from collections.abc import Callable

import pytest

from tests.hostile.shop.tampering_shop import Answer, Tamper, TamperingShop
from worker.orders.matching import difference
from worker.sites.port import Item, PageChangedError
from worker.sites.sandbox.adapter import SandboxSite

LINE = '<tr class="line" data-variant-id="">'
LINK = '<a class="item-link"'
ONE = 'quantity">1<'


def edit(old: str, new: str) -> Callable[[Answer], Answer]:
    return lambda answer: answer.edit(old, new)


def second_table(answer: Answer) -> Answer:
    html = answer.body.decode()
    table = html[html.index("<table") : html.index("</table>") + len("</table>")]
    return answer.edit(table, table + table.replace(ONE, 'quantity">5<'))


def second_table_of_no_name(answer: Answer) -> Answer:
    return second_table(answer).edit("</table><table", "</table><table title")


def no_text(answer: Answer) -> Answer:
    return Answer(answer.status, answer.headers, answer.body.replace(b"<table", b"\xff<table"))


UNREADABLE: list[tuple[str, Tamper]] = [
    ("a second table", second_table),
    ("a second table of no name", second_table_of_no_name),
    ("a table that is no table of lines", edit("<table", "<table><tr><td>1</table><table")),
    ("a line outside of the table", edit("<table", '<div class="line">カメラ × 4</div><table')),
    ("an item outside of the table", edit("<table", f'{LINK} href="/x">x</a><table')),
    ("a row that is no line", edit("</tbody>", "<tr><td>カメラ × 4</td></tr></tbody>")),
    ("a row in the foot", edit("</tbody>", "</tbody><tfoot><tr><td>カメラ × 4</td></tr></tfoot>")),
    ("a row more in the head", edit("<thead>", "<thead><tr><th>カメラ × 4</th></tr>")),
    ("a row of goods in the head", edit("<tr><th", "<tr><td>カメラ × 4</td><th")),
    ("a page that leads on", edit("<head>", '<head><meta http-equiv="Refresh" content="0;url=/other">')),
    ("a page that leads on from its body", edit("<table", '<meta http-equiv=" refresh " content="0"><table')),
    ("a shadow root", edit("<table", '<div><template shadowrootmode="open">カメラ</template></div><table')),
    ("two quantities", edit(ONE, 'quantity">1</td><td class="quantity">5<')),
    ("a quantity in full width", edit(ONE, 'quantity">１<')),
    ("a quantity of none", edit(ONE, 'quantity">0<')),
    ("a quantity with a rest", edit(ONE, 'quantity">1.5<')),
    ("a quantity of elements", edit(ONE, 'quantity">1<b>0</b><')),
    ("a quantity without end", edit(ONE, f'quantity">{"1" * 100_000}<')),
    ("the line hidden", edit(LINE, LINE.replace(">", " hidden>"))),
    ("the line perhaps hidden", edit(LINE, LINE.replace(">", ' style="opacity:0">'))),
    ("two links in a line", edit(LINK, f'{LINK} href="/a">a</a>{LINK}')),
    ("a link that two readers take differently", edit('href="/item/', r'href="\item/')),
    ("a link that is no address", edit('href="/item/', 'href="http://[/item/')),
    ("links that begin elsewhere", edit("<head>", '<head><base href="http://other.example/">')),
    ("deep within", edit("<table", "<div>" * 200 + "<table")),
    ("with what not every browser reads alike", edit("<table", "<noembed></noembed><table")),
    ("not UTF-8", no_text),
]


async def test_lines_are_read_whole_or_not_at_all(shop: TamperingShop, site: SandboxSite) -> None:
    await site.add_to_cart(Item(shop.item_url("camera-body")))
    assert len((await site.read_cart()).items) == len((await site.open_confirmation({})).items) == 1
    for name, tamper in UNREADABLE:
        shop.arm("GET", "/cart", tamper)
        shop.arm("GET", "/order/confirm", tamper)
        with pytest.raises(PageChangedError):
            pytest.fail(f"{name}: the cart is read as {(await site.read_cart()).items}")
        with pytest.raises(PageChangedError) as unreadable:
            pytest.fail(f"{name}: the order is read as {(await site.open_confirmation({})).items}")
        assert unreadable.value.error_code == 5004, name


DIFFERENT: list[tuple[Tamper, str]] = [
    (edit('/camera-body/"', '/camera-body/?plan=yearly"'), "?plan=yearly: wanted 0, shown 1"),
    (edit('href="/item/', 'href="//other.example/item/'), "other.example/item/sandbox-store/camera-body: wanted 0"),
    (edit('data-variant-id=""', 'data-variant-id="gold"'), "variant gold: wanted 0, shown 1"),
    (edit("</a>\n", '</a><ul><li class="choice">保証五年</li></ul>\n'), "保証五年: wanted 0, shown 1"),
    (edit(ONE, 'quantity">5<'), "wanted 1, shown 5"),
]


async def test_other_lines_than_the_wanted_ones_are_told(shop: TamperingShop, site: SandboxSite) -> None:
    wanted = Item(shop.item_url("camera-body"))
    await site.add_to_cart(wanted)
    assert difference([wanted], (await site.read_cart()).items) is None
    for tamper, words in DIFFERENT:
        shop.arm("GET", "/cart", tamper)
        shop.arm("GET", "/order/confirm", tamper)
        for items in ((await site.read_cart()).items, (await site.open_confirmation({})).items):
            assert words in (difference([wanted], items) or "no difference")


async def test_an_empty_cart_holds_no_line(shop: TamperingShop, site: SandboxSite) -> None:
    shop.arm(
        "GET",
        "/cart",
        edit('<p id="cart-empty">', '<table><tr class="line"><td>1</td></tr></table><p id="cart-empty">'),
    )
    with pytest.raises(PageChangedError):
        await site.read_cart()
