"""What the confirmation page asks for, as the permit is requested for it (docs/specification.md#terms)."""

from itertools import zip_longest

from ordergateway.v1 import orders_pb2

from common.terms_digest import terms_digest
from worker.sites.port import Confirmation


def terms_of(confirmation: Confirmation) -> orders_pb2.Terms | None:
    """Return the terms that a confirmation page shows; None where its amount cannot be read."""
    if confirmation.payable_yen is None:
        return None
    lines = [
        (item.item_url, item.variant_id or "", item.quantity, price)
        for item, price in zip_longest(confirmation.items, confirmation.unit_prices)
    ]
    return orders_pb2.Terms(
        payable_yen=confirmation.payable_yen,
        items=[
            orders_pb2.TermsItem(item_url=url, variant_id=variant, quantity=quantity, unit_price_yen=price)
            for url, variant, quantity, price in lines
        ],
        digest=terms_digest(confirmation.payable_yen, lines),
    )
