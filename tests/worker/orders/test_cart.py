"""The amount guard, on both sides of each of its limits."""

import pytest

from worker.orders.cart import guard_amount


@pytest.mark.parametrize(
    ("payable", "limit", "passes"),
    [
        (29_999, 30_000, True),
        (30_000, 30_000, True),
        (30_001, 30_000, False),
        (1, 1, True),
        (2, 1, False),
        (0, 30_000, False),
        (-1, 30_000, False),
        (None, 30_000, False),
        (1, None, False),
        (10**12, 10**12, True),
        (10**12 + 1, 10**13, False),
    ],
)
def test_the_guard_on_both_sides_of_each_limit(payable: int | None, limit: int | None, passes: bool) -> None:
    end = guard_amount(payable, limit)
    if passes:
        assert end is None
    else:
        assert end is not None
        assert (end.status, end.error_code) == ("needs_human", 5004)
