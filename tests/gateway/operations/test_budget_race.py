"""Two permits raced for the last yen of a budget: the database lets exactly one of them have them."""

from pathlib import Path

import pytest

from tests.gateway.support.budget_race import race
from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.manual_time import ManualTime


@pytest.mark.parametrize(
    "rounds",
    [pytest.param(12, id="a few"), pytest.param(200, marks=[pytest.mark.extended, pytest.mark.timeout(600)])],
)
async def test_the_last_yen_are_reserved_once(tmp_path: Path, time: ManualTime, rounds: int) -> None:
    async with (
        running_gateway(tmp_path, time, lease_scope="site") as gateway,
        gateway.client() as first,
        gateway.client() as second,
    ):
        await race(first, second, rounds)
