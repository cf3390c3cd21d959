"""Many runs, none of which may break an invariant; and that a run can be repeated exactly."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.simulation import account_themes, condition_themes
from tests.simulation.figures import MUST_BE_REACHED, not_reached
from tests.simulation.gateways import themes as gateway_themes
from tests.simulation.layout import World
from tests.simulation.run import simulate
from tests.simulation.themes import ROUND
from tests.simulation.trace import Trace
from tests.simulation.world import Result

BATCH = 3 * ROUND
"""So many runs must have come to everything that is counted; a single round, each theme once, need not."""
DEEP = [pytest.mark.extended, pytest.mark.timeout(900)]
QUICK = pytest.mark.timeout(300)
BATCHES = [
    pytest.param(World.ALONE, range(1, 1 + ROUND), marks=QUICK),
    pytest.param(World.ALONE, range(1 + ROUND, 1 + 4 * BATCH), marks=DEEP),
    pytest.param(World.ALONE, range(1 + 4 * BATCH, 1 + 8 * BATCH), marks=DEEP),
    pytest.param(World.ACCOUNTS, range(1, 1 + account_themes.ROUND), marks=QUICK),
    pytest.param(World.ACCOUNTS, range(1 + account_themes.ROUND, 1 + 25 * account_themes.ROUND), marks=DEEP),
    pytest.param(World.CONDITIONS, range(1, 1 + condition_themes.ROUND), marks=QUICK),
    pytest.param(World.CONDITIONS, range(1 + condition_themes.ROUND, 1 + 25 * condition_themes.ROUND), marks=DEEP),
    pytest.param(World.GATEWAYS, range(1, 1 + gateway_themes.ROUND), marks=QUICK),
    pytest.param(World.GATEWAYS, range(1 + gateway_themes.ROUND, 1 + 15 * gateway_themes.ROUND), marks=DEEP),
]


def timeline(result: Result) -> str:
    return "\n".join([*result.lines, f"{result.world}, seed {result.seed}: ", *result.violations])


@pytest.mark.parametrize(("world", "seeds"), BATCHES)
def test_no_run_breaks_an_invariant(world: World, seeds: range, record_property: Callable[[str, object], None]) -> None:
    counts: Counter[str] = Counter()
    seconds = 0.0
    for seed in seeds:
        result = simulate(seed, world)
        assert not result.violations, timeline(result)
        counts += result.counts
        seconds += result.seconds
    record_property("simulated", {"runs": len(seeds), "seconds": seconds, "counts": dict(counts)})
    assert not counts["duplicates"]
    assert counts["orders placed"] >= len(seeds), "hardly anything was ordered, so hardly anything was shown"
    if world is World.ALONE:
        assert counts["worker crashes"] > len(seeds) / 2
        assert counts["gateway crashes"] > len(seeds) / 2
    never = not_reached(world, counts) if len(seeds) >= BATCH else []
    assert not never, f"{len(seeds)} runs never came to: {', '.join(never)}"


@pytest.mark.parametrize(("world", "name"), [(world, name) for world in World for name in MUST_BE_REACHED[world]])
def test_what_was_never_reached_is_named(world: World, name: str) -> None:
    counts = dict.fromkeys(MUST_BE_REACHED[world], 1)
    assert not_reached(world, counts) == []
    assert not_reached(world, {**counts, name: 0}) == [name]


# 223: an order of another task, whose number nobody had told, was taken for this one's. 16050: a report that came
# twice, the second time after a person had resolved the task, was judged as news. 100509: a gateway was put back just
# when everything healed, and nobody filed again what it had forgotten. 100853: a worker was asked to stop again,
# and the auditor counted from then. 100254: a worker whose clock was over an hour ahead did
# not see the order of its click. 200422: the list came to show an order while it was read, and the auditor knew only
# what it showed before. 201666: a reboot of the gateway's machine had ended a permit, and the auditor held it for open.
@pytest.mark.parametrize("seed", [223, 16050, 100509, 100853, 100254, 200422, 201666])
def test_a_run_that_was_once_guilty_is_clean(seed: int) -> None:
    result = simulate(seed)
    assert not result.violations, timeline(result)


# 58: the database's clock was set back while a group was on its way, so nobody knew how long that took. 79: that the
# database could not do it now was taken for a refusal of the permit. 126: a gateway that stood still read a worker's
# old request after the worker had begun to wait elsewhere, and took an order for it. 214: while one gateway stood
# still and the other was down, the database's clock was set forward past the term of the first. 256: an order went to
# the stream of a process that had died, as its machine had lost power, though the next one with its journal waited
# already.
@pytest.mark.parametrize("seed", [58, 79, 126, 214, 256])
def test_a_run_of_several_gateways_that_was_once_guilty_is_clean(seed: int) -> None:
    result = simulate(seed, World.GATEWAYS)
    assert not result.violations, timeline(result)


# 993: at a reboot the clock was put ahead to the end of an open permit, so another account's click was settled earlier.
def test_a_run_of_several_accounts_that_was_once_guilty_is_clean() -> None:
    result = simulate(993, World.ACCOUNTS)
    assert not result.violations, timeline(result)


@pytest.mark.parametrize(
    ("world", "seed"), [(World.ALONE, 1), (World.ALONE, 14), (World.ACCOUNTS, 3), (World.GATEWAYS, 12)]
)
def test_a_seed_gives_the_same_run_again(world: World, seed: int) -> None:
    assert simulate(seed, world).digest == simulate(seed, world).digest


@pytest.mark.parametrize("hash_seed", ["1", pytest.param("2", marks=pytest.mark.extended)])
def test_a_seed_gives_the_same_run_in_another_process(hash_seed: str) -> None:
    code = (
        "from tests.simulation.run import simulate; from tests.simulation.layout import World;"
        "print(*[simulate(seed).digest for seed in (1, 33)], simulate(12, World.GATEWAYS).digest)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ".:clients/python"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert told.stdout.split() == [
        *(simulate(seed).digest for seed in (1, 33)),
        simulate(12, World.GATEWAYS).digest,
    ]


def test_a_timeline_does_not_tell_the_folder_of_its_run(tmp_path: Path) -> None:
    trace = Trace(lambda: 0.0, tmp_path)
    trace("worker-a", f"cannot start: {tmp_path / 'worker-a' / 'trading.db'} is in use")
    assert trace.lines == ["     0.000  worker-a     cannot start: worker-a/trading.db is in use"]


def test_different_seeds_give_different_runs() -> None:
    assert len({simulate(seed).digest for seed in range(1, 6)}) == 5
