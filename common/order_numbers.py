"""How a site's order number is written: without blanks around it, and so that whoever reads it sees all of it."""

import re
from typing import Final

MAX_ORDER_NUMBER: Final = 128

_UNSEEN: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Shown as nothing or as a blank, though Python calls them printable: Default_Ignorable_Code_Point, and U+2800."""


def order_number(text: str) -> str | None:
    """Return an order number as it is kept and compared; None for an empty, overlong or unprintable one."""
    number = text.strip()
    fits = 1 <= len(number) <= MAX_ORDER_NUMBER
    return number if fits and number.isprintable() and not _UNSEEN.search(number) else None
