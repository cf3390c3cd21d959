"""One order number has one form, whoever tells it."""

import pytest

from common.order_numbers import MAX_ORDER_NUMBER, order_number


@pytest.mark.parametrize("text", ["777-1", " 777-1", "777-1 \t", "\u3000777-1\n"])
def test_blanks_around_it_are_no_part_of_it(text: str) -> None:
    assert order_number(text) == "777-1"


@pytest.mark.parametrize(
    "text", ["", " ", "7\n7", "7\u200b7", "\u3164", "7\u28007", "7\ufe0f", "7\U000e0100", "\u115f7"]
)
def test_what_nobody_sees_is_in_no_number(text: str) -> None:
    assert order_number(text) is None


def test_it_has_a_length() -> None:
    assert order_number("番" * MAX_ORDER_NUMBER) is not None
    assert order_number("番" * (MAX_ORDER_NUMBER + 1)) is None
