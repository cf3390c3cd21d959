"""Reading the sandbox shop's pages, from the login to the cart. Pure: bytes in, values out.

Whatever is not where it should be, or is there twice, raises PageChangedError with the page, so that nothing is
concluded from half a page.

These functions run in `worker.sites.page_process`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from selectolax.lexbor import LexborNode

from worker.sites.forms import Form, read_form
from worker.sites.port import Item, Page
from worker.sites.shown import Document

ORDER_NUMBER = re.compile(r"[A-Za-z0-9-]{1,100}")
ITEM_PATH = re.compile(r"/item/[A-Za-z0-9_-]+/[A-Za-z0-9_-]+/")

_QUANTITY = re.compile(r"[1-9][0-9]{0,3}")
_ITEM_CONTROLS = {"variant_id", "choice", "quantity"}


@dataclass(frozen=True, slots=True)
class ItemForm:
    """The form of an item's page. `variants`: whether each is in stock; `options`: the choices of each."""

    form: Form
    variants: Mapping[str, bool]
    options: tuple[tuple[str, ...], ...]
    sold_out: bool


@dataclass(frozen=True, slots=True)
class CartLine:
    """A line of the cart and the form that removes it."""

    item: Item
    removal: Form


def parse_time(text: Any) -> datetime | None:
    """Return a time with its offset, in UTC; None for anything else, a time without an offset included."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (TypeError, ValueError, OverflowError):
        return None


def read_refusal(page: Page) -> str | None:
    """Return what the page says it refuses, None where it refuses nothing. Raises PageChangedError."""
    document = Document(page)
    said = [document.text(node) for node in document.every(".refusal[role=alert]")]
    return " ".join(filter(None, said)) or None


def is_not_found(page: Page) -> bool:
    """Return True if the shop itself says that there is no such thing. Raises PageChangedError."""
    return Document(page).at_most_one("#not-found") is not None


def read_login_form(page: Page) -> Form:
    """Return the login form. Raises PageChangedError."""
    document = Document(page)
    return read_form(
        document,
        only_form(document, "login-form"),
        action="/login",
        hidden=set(),
        controls={"username", "password"},
    )


def read_account_name(page: Page) -> str:
    """Who is logged in. Raises PageChangedError."""
    document = Document(page)
    return document.text(document.one("#account-name")) or document.changed("the account's name")


def read_item_form(page: Page) -> ItemForm:
    """Return the form of an item's page. Raises PageChangedError."""
    document = Document(page)
    form = only_form(document, "add-to-cart")
    variants = {
        value: "disabled" not in node.attributes
        for node in document.every("input[name=variant_id]", form)
        if (value := node.attributes.get("value"))
    }
    options = tuple(
        tuple(value for option in select.css("option") if (value := option.attributes.get("value")))
        for select in document.every("select[name=choice]", form)
    )
    sold_out = document.at_most_one("#sold-out", form) is not None
    sent = read_form(document, form, action="/cart/add", hidden={"code"}, controls=_ITEM_CONTROLS)
    return ItemForm(sent, variants, options, sold_out)


def read_cart(page: Page) -> tuple[CartLine, ...]:
    """Return the lines of the cart's page. Raises PageChangedError."""
    document = Document(page)
    document.one("#cart")
    if document.at_most_one("#cart-empty") is not None:
        if document.every("table, .line, .item-link"):
            document.changed("either lines or a word that there are none")
        return ()
    return tuple(CartLine(read_line(document, row), _removal(document, row)) for row in rows(document, "cart-lines"))


def _removal(document: Document, row: LexborNode) -> Form:
    return read_form(document, document.one("form", row), action="/cart/remove", hidden={"line"})


def only_form(document: Document, name: str) -> LexborNode:
    """Return the page's only form, which has this id. Raises PageChangedError."""
    form = document.one("form")
    return form if form.attributes.get("id") == name else document.changed(f"the form {name}")


def rows(document: Document, table_id: str) -> list[LexborNode]:
    """Return the lines of the page's only table; nothing on the page looks like a line and stands elsewhere.

    Raises PageChangedError.
    """
    table = document.one("table")
    rows = document.every("tbody > tr")
    if table.attributes.get("id") != table_id or not rows:
        document.changed(f"lines in the table {table_id}")
    heads = [row for row in document.every("tr") if row not in rows]
    is_head = all(row.parent is not None and row.parent.tag == "thead" and not row.css("td") for row in heads)
    if (
        len(heads) > 1
        or not is_head
        or document.every(".line") != rows
        or len(document.every(".item-link")) != len(rows)
    ):
        document.changed("a table in which every row is a line")
    return rows


def read_line(document: Document, row: LexborNode) -> Item:
    """Return what a line of the cart or of the confirmation page shows. Raises PageChangedError."""
    quantity = document.text(document.one(".quantity", row))
    if not _QUANTITY.fullmatch(quantity):
        document.changed("a quantity that can be read")
    return Item(
        item_url=document.link(document.one("a.item-link", row).attributes.get("href")),
        quantity=int(quantity),
        variant_id=row.attributes.get("data-variant-id") or None,
        choice=tuple(document.text(node) for node in document.every("li.choice", row)),
    )
