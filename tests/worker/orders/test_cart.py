"""The amount guard, on both sides of each of its limits."""

import pytest

from worker.orders.cart import guard_amount
from worker.orders.run import EndOrderError


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
    if passes:
        guard_amount(payable, limit)
        return
    with pytest.raises(EndOrderError) as end:
        guard_amount(payable, limit)
    assert (end.value.status, end.value.error_code) == ("needs_human", 5004)
