"""Terms between the contract's messages and the domain's values.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

from typing import Final

from ordergateway.v1 import orders_pb2

from common.terms_digest import terms_digest
from gateway.domain import fields
from gateway.domain.refusals import invalid
from gateway.domain.terms import Terms, TermsItem

MAX_ITEMS: Final = 100
MAX_QUANTITY: Final = 9_999
MAX_VARIANT_CHARACTERS: Final = 1_000


def terms(message: orders_pb2.Terms) -> Terms:
    """Check what a worker read from the confirmation page."""
    if not message.HasField("payable_yen"):
        raise invalid("terms.payable_yen", "is required")
    payable_yen = fields.whole_number("terms.payable_yen", message.payable_yen, low=0, high=fields.MAX_YEN)
    if not 1 <= len(message.items) <= MAX_ITEMS:
        raise invalid("terms.items", f"must be 1 to {MAX_ITEMS} items")
    items = tuple(_item(f"terms.items[{number}]", item) for number, item in enumerate(message.items))
    lines = ((item.item_url, item.variant_id, item.quantity, item.unit_price_yen) for item in items)
    if message.digest != terms_digest(payable_yen, lines):
        raise invalid("terms.digest", "is not the digest of these terms (orders.proto, Terms.digest)")
    return Terms(payable_yen, items, message.digest)


def _item(field: str, item: orders_pb2.TermsItem) -> TermsItem:
    url, variant = f"{field}.item_url", f"{field}.variant_id"
    price = item.unit_price_yen if item.HasField("unit_price_yen") else None
    return TermsItem(
        item_url=fields.printable(url, item.item_url, limit=fields.MAX_URL_CHARACTERS, required=True),
        variant_id=fields.printable(variant, item.variant_id, limit=MAX_VARIANT_CHARACTERS),
        quantity=fields.whole_number(f"{field}.quantity", item.quantity, low=1, high=MAX_QUANTITY),
        unit_price_yen=fields.integer(f"{field}.unit_price_yen", price, low=0, high=fields.MAX_YEN),
    )


def terms_message(told: Terms | None) -> orders_pb2.Terms | None:
    """Write terms."""
    if told is None:
        return None
    return orders_pb2.Terms(
        payable_yen=told.payable_yen,
        items=[
            orders_pb2.TermsItem(
                item_url=item.item_url,
                variant_id=item.variant_id,
                quantity=item.quantity,
                unit_price_yen=item.unit_price_yen,
            )
            for item in told.items
        ],
        digest=told.digest,
    )
