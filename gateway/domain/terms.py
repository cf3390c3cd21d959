"""What a confirmation page asks for, as a worker shows it before the click (docs/specification.md#terms)."""

import json
from dataclasses import dataclass
from typing import Any

from gateway.domain.json_writing import dump


@dataclass(frozen=True, slots=True)
class TermsItem:
    """An item on the page. `variant_id` empty: it has none; `unit_price_yen` None: the page does not show it."""

    item_url: str
    variant_id: str
    quantity: int
    unit_price_yen: int | None


@dataclass(frozen=True, slots=True)
class Terms:
    """The amount to pay in yen, what it is for in the order of the page, and the digest of both."""

    payable_yen: int
    items: tuple[TermsItem, ...]
    digest: str


def terms_document(terms: Terms | None) -> dict[str, Any] | None:
    """Return terms as JSON values, the same in every JSON form that shows them."""
    if terms is None:
        return None
    return {
        "payable_yen": terms.payable_yen,
        "items": [
            {
                "item_url": item.item_url,
                "variant_id": item.variant_id,
                "quantity": item.quantity,
                "unit_price_yen": item.unit_price_yen,
            }
            for item in terms.items
        ],
        "digest": terms.digest,
    }


def terms_text(terms: Terms | None) -> str | None:
    """Return terms as they are stored."""
    return None if terms is None else dump(terms_document(terms))


def terms_of(text: str | None) -> Terms | None:
    """Return the terms of a text that `terms_text` wrote."""
    if text is None:
        return None
    document = json.loads(text)
    items = tuple(TermsItem(**item) for item in document["items"])
    return Terms(document["payable_yen"], items, document["digest"])
