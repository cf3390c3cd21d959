"""Two gateways on one database, each asked for the last yen of a budget at once: one of them grants it."""

from pathlib import Path

import pytest

from tests.gateway.support.budget_race import race
from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.manual_time import ManualTime


@pytest.mark.needs("postgresql")
@pytest.mark.parametrize(
    "rounds",
    [pytest.param(12, id="a few"), pytest.param(200, marks=[pytest.mark.extended, pytest.mark.timeout(600)])],
)
async def test_the_last_yen_are_reserved_once(url: str, tmp_path: Path, time: ManualTime, rounds: int) -> None:
    settings = {"gateway_db_url": url, "lease_scope": "site"}
    async with (
        running_gateway(tmp_path / "a", time, **settings) as a,
        running_gateway(tmp_path / "b", time, **settings) as b,
    ):
        await race(a.api, b.api, rounds)
