"""What a confirmation page and a payment page may show as the amount, and what the adapter makes of it.

A row is a name, what the shop shows instead of the true amount's row, and the amount that may be read from it: None is
"cannot be read", which ends the order before any permit, code 5004. One camera costs 298,000 yen.
"""
# ruff: noqa: RUF001 -- digits and signs that look alike are what is tested

from dataclasses import dataclass

import pytest

from tests.hostile.shop.tampering_shop import TamperingShop
from tests.worker.running_shop import no_look
from worker.sites.port import Item, SiteError
from worker.sites.sandbox.adapter import SandboxSite
from worker.sites.sandbox.checkout_pages import read_payment_form

CAMERA = 298_000
TRUE = '<dt>お支払い金額</dt><dd class="payable" id="payable">298,000円</dd>'
FAKE = '<dt>お支払い金額</dt><dd class="payable" id="payable">1円</dd>'
BARE = '<dd id="payable">1円</dd>'


def only(text: str) -> str:
    return TRUE.replace("298,000円", text)


@dataclass(frozen=True)
class Row:
    name: str
    shown: str
    amount: int | None


ROWS = [
    Row("as it is", TRUE, CAMERA),
    # More than one
    Row("a small one before", BARE + TRUE, None),
    Row("a small one after", TRUE + BARE, None),
    Row("a small one with its label before", FAKE + TRUE, None),
    Row("a small one of the class alone", '<dd class="payable">1円</dd>' + TRUE, None),
    Row("a small one in another part", TRUE + '</dl><p id="payable">1円</p><dl class="facts">', None),
    Row("the true one without a mark", "<dt>お支払い金額</dt><dd>298,000円</dd>" + BARE, None),
    Row("the true one as a sentence", FAKE + "<dt>注意</dt><dd>お支払い金額は298,000円です</dd>", None),
    Row("under another label", TRUE.replace("お支払い金額", "ポイント"), None),
    Row("a sign between it and its label", TRUE.replace("<dd", "<<dd"), None),
    Row("the true one as loose text", FAKE + "298,000円", None),
    Row("its label is elsewhere", '<dt>お支払い金額</dt><dd>別途</dd><dt>手数料</dt><dd id="payable">1円</dd>', None),
    # What else the same list of facts says
    Row("a larger one", TRUE + "<dt>ご請求額</dt><dd>999,999円</dd>", None),
    Row("a larger one before", "<dt>ご請求額</dt><dd>999,999円</dd>" + TRUE, None),
    Row("a larger one in full width", TRUE + "<dt>ご請求額</dt><dd>９９９，９９９円</dd>", None),
    Row("a larger one with a sign", TRUE + "<dt>ご請求額</dt><dd>￥999,999</dd>", None),
    Row("a larger one in ten thousands", TRUE + "<dt>ご請求額</dt><dd>99万円</dd>", None),
    Row("a larger one in two pieces", TRUE + "<dt>ご請求額</dt><dd>999,<b>999</b>円</dd>", None),
    Row("a smaller one", TRUE + "<dt>送料</dt><dd>550円</dd>", CAMERA),
    # Hidden beyond doubt: does not count
    Row("a small one in noscript", f"<noscript>{BARE}</noscript>" + TRUE, CAMERA),
    Row("a small one in a comment", f"<!-- {BARE} -->" + TRUE, CAMERA),
    Row("a small one in a template", f"<template>{BARE}</template>" + TRUE, CAMERA),
    Row("a small one in a script", f"<script>{BARE}</script>" + TRUE, CAMERA),
    Row("a small one, hidden", '<dd id="payable" hidden>1円</dd>' + TRUE, CAMERA),
    Row("a small one, not displayed", '<dd id="payable" style="display:none">1円</dd>' + TRUE, CAMERA),
    Row("a small one, Display : NONE", '<dd id="payable" style=" Display : NONE !important;">1円</dd>' + TRUE, CAMERA),
    Row("a small one in what is hidden", f'<div hidden><p style="margin:0">{BARE}</p></div>' + TRUE, CAMERA),
    Row("hidden by what noscript leaves open", f"</dl><noscript><div hidden></noscript><dl class=facts>{TRUE}</dl>"
        f"<noscript></div></noscript><dl class=facts>{FAKE}", None),
    Row("hidden by a comment in noscript", f"<noscript><!-- </noscript>{TRUE}<noscript> --></noscript>{FAKE}", None),
    Row("the only one in noscript", f"<noscript>{TRUE}</noscript>", None),
    Row("the only one hidden", TRUE.replace("<dd ", "<dd hidden "), None),
    Row("the only one not displayed", TRUE.replace("<dd ", '<dd style="display: none" '), None),
    Row("the only one in a comment", f"<!-- {TRUE} -->", None),
    # Perhaps hidden: not guessed
    Row("made invisible", TRUE.replace("<dd ", '<dd style="visibility:hidden" ') + BARE, None),
    Row("in small print", TRUE.replace("<dd ", '<dd style="font-size:0" '), None),
    Row("moved off", TRUE.replace("<dd ", '<dd style="margin:-9999px" '), None),
    Row("an escape in the style", r'<dd id="payable" style="displa\79:none">1円</dd>' + TRUE, None),
    Row("hidden and displayed", '<dd id="payable" hidden style="display:block">1円</dd>' + TRUE, None),
    Row("displayed after all", '<dd id="payable" style="display:none;display:block">1円</dd>' + TRUE, None),
    Row("in details", f"</dl><details><dl class=facts>{BARE}</dl></details><dl class=facts>" + TRUE, None),
    Row("in a picture", f"<svg><foreignObject>{BARE}</foreignObject></svg>" + TRUE, None),
    Row("in an element of its own", f"<x-price>{BARE}</x-price>" + TRUE, None),
    Row("hidden from some", TRUE.replace("<dd ", '<dd aria-hidden="true" '), None),
    # How an amount is written
    Row("without separators", only("298000円"), CAMERA),
    Row("white space around", only(" \n 298,000円 "), CAMERA),
    Row("in two pieces of text", only("298,<!-- -->000円"), CAMERA),
    Row("nothing", only(""), None),
    Row("nothing to pay", only("0円"), 0),
    Row("zeros", only("00円"), None),
    Row("a zero in front", only("0298,000円"), None),
    Row("negative", only("-298,000円"), None),
    Row("negative, typographic", only("−298,000円"), None),
    Row("decimals", only("298,000.00円"), None),
    Row("a wrong separator", only("298.000円"), None),
    Row("separators in the wrong place", only("29,8000円"), None),
    Row("a space within", only("298 000円"), None),
    Row("full-width digits", only("２９８，０００円"), None),
    Row("Chinese digits", only("二十九万八千円"), None),
    Row("in units of ten thousand", only("29万8,000円"), None),
    Row("Arabic digits", only("٢٩٨٠٠٠円"), None),
    Row("a sign in front", only("¥298,000"), None),
    Row("no currency", only("298,000"), None),
    Row("dollars", only("$2,980"), None),
    Row("dollars and yen", only("2,980円 ($20)"), None),
    Row("the price of one", only("298,000円/個"), None),
    Row("the price of one, times", only("298,000円 × 1"), None),
    Row("from", only("298,000円〜"), None),
    Row("about", only("約298,000円"), None),
    Row("tax on top", only("298,000円(税別)"), None),
    Row("two amounts", only("298,000円 1円"), None),
    Row("struck through", only("<s>298,000円</s>1円"), None),
    Row("digits in an element", only("29<b>8,000</b>円"), None),
    Row("digits in a hidden element", only('29<b hidden>8,00</b>0円'), None),
    Row("written backwards", only("\u202e円000,892"), None),
    Row("something invisible within", only("2\u200b98,000円"), None),
    Row("too long", only("9" * 13 + "円"), None),
    Row("very long", only("9" * 100_000 + "円"), None),
]  # fmt: skip


async def test_one_amount_or_none(shop: TamperingShop, site: SandboxSite) -> None:
    await site.add_to_cart(Item(shop.item_url("camera-body")))
    read: dict[str, int | None] = {}
    for row in ROWS:
        shop.arm("GET", "/order/confirm", lambda answer, row=row: answer.edit(TRUE, row.shown))  # type: ignore[misc]
        read[row.name] = (await site.open_confirmation({})).payable_yen
    assert read == {row.name: row.amount for row in ROWS}


async def test_an_amount_below_that_of_the_goods_is_none(shop: TamperingShop, site: SandboxSite) -> None:
    await site.add_to_cart(Item(shop.item_url("camera-body")))
    shop.arm("GET", "/order/confirm", lambda answer: answer.edit(TRUE, only("297,999円")))
    assert (await site.open_confirmation({})).payable_yen is None


async def test_the_payment_page_is_read_as_the_confirmation_page_is(shop: TamperingShop, site: SandboxSite) -> None:
    await site.add_to_cart(Item(shop.item_url("camera-body")))
    number = (await site.submit(await site.open_confirmation({}), no_look)).site_order_id or ""
    asked: dict[str, int | None] = {}
    for row in ROWS:
        shop.arm("GET", "/payment", lambda answer, row=row: answer.edit(TRUE, row.shown))  # type: ignore[misc]
        shown = await site._reader.read(
            read_payment_form, await site._visit.page_at("/payment", {"order_number": number})
        )
        asked[row.name] = shown and shown.payable_yen
    assert asked == {row.name: row.amount for row in ROWS}


@pytest.mark.parametrize("asked", ["298,001円", "297,999円", "9,999,999円", "0円"])
async def test_another_amount_than_the_confirmed_one_is_not_paid(
    shop: TamperingShop, site: SandboxSite, asked: str
) -> None:
    await site.add_to_cart(Item(shop.item_url("camera-body")))
    number = (await site.submit(await site.open_confirmation({}), no_look)).site_order_id
    shop.arm("GET", "/payment", lambda answer: answer.edit("298,000円", asked))
    with pytest.raises(SiteError, match="nothing was paid"):
        await site.pay(number or "", CAMERA, {}, no_look)
    assert shop.behind.shop.requests["pay"] == 0


async def test_without_a_confirmed_amount_nothing_is_paid(shop: TamperingShop, site: SandboxSite) -> None:
    await site.add_to_cart(Item(shop.item_url("camera-body")))
    number = (await site.submit(await site.open_confirmation({}), no_look)).site_order_id
    shop.arm("GET", "/payment", lambda answer: answer.edit("298,000円", "約298,000円"))
    with pytest.raises(SiteError, match="nothing was paid"):
        await site.pay(number or "", None, {}, no_look)
    assert shop.behind.shop.requests["pay"] == 0
