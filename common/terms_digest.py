"""The digest of what a confirmation page asks for: equal terms, equal digest (orders.proto, Terms.digest)."""

import hashlib
from collections.abc import Iterable

Line = tuple[str, str, int, int | None]
"""An item: address, variant (empty: none), how many, and the price of one in yen, None where it is not shown."""


def terms_digest(payable_yen: int, lines: Iterable[Line]) -> str:
    """Return the SHA-256 of an amount in yen and the items it is for, as 64 lower-case hexadecimal digits."""
    text = [f"{payable_yen}\n"]
    text += [
        f"{url}\t{variant}\t{quantity}\t{'' if unit_price is None else unit_price}\n"
        for url, variant, quantity, unit_price in lines
    ]
    return hashlib.sha256("".join(text).encode()).hexdigest()
