"""A short siege of real processes; `make kill` and `make soak` are the long ones."""

from pathlib import Path

import pytest

from tests.faults.siege import Siege, siege


async def besiege(folder: Path, seed: int, rounds: int) -> Siege:
    async with siege(folder, seed) as besieged:
        for number in range(1, rounds + 1):
            await besieged.round(number)
    return besieged


@pytest.mark.timeout(180)
@pytest.mark.parametrize("seed", [1, 2])
async def test_rounds_of_blows_never_make_a_second_order_nor_lose_what_was_acknowledged(
    tmp_path: Path, seed: int
) -> None:
    besieged = await besiege(tmp_path, seed, rounds=5)
    assert not besieged.violations
    assert besieged.figures["tasks"] == 5
