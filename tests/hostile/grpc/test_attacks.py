"""Every attack of the table: the gateway stays up, stays small, and serves the honest meanwhile."""

from pathlib import Path

import pytest

from tests.gateway.api.test_auth import certificates
from tests.hostile.grpc.attacks import TABLE, Row
from tests.hostile.grpc.flood import MIB, attacked

__all__ = ["certificates"]


@pytest.mark.parametrize("row", [row for row in TABLE if row.some], ids=lambda row: row.name)
async def test_an_attack_is_borne(certificates: Path, row: Row) -> None:
    await is_borne(row, row.some, certificates)


@pytest.mark.extended
@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
async def test_more_of_an_attack_is_borne(certificates: Path, row: Row) -> None:
    await is_borne(row, row.many, certificates)


async def is_borne(row: Row, amount: int, folder: Path) -> None:
    found = await attacked(row, amount, folder)
    assert found.growth_mib < row.most_growth_mib
    if row.spares_its_token:
        assert found.lists
        assert found.slowly_read > MIB
    assert "Traceback" not in found.log
    assert "FORGED" not in found.log
