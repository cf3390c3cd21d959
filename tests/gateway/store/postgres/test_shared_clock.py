"""One clock for several gateways: lives with drift, steps, freezes and reboots, judged against the true time.

It never goes back, is never behind the truth by more than a little while somebody vouches for it, and no step of the
database's clock moves it by more than the time for which nobody could.
"""

import random
from dataclasses import dataclass, field

import pytest

from gateway.store.postgres.shared_clock import NewestGroup, Reading, is_vouched, judge

SECOND = 1_000_000
STEPS = (3_600, -3_600, 30, -30, 5, -5, 1, -1)


@dataclass
class Machine:
    """A gateway's machine: its boot clock drifts by up to 100 millionths, and stands while it is frozen."""

    drift: float
    base_us: float
    frozen_us: float = 0.0
    own: Reading | None = None

    def boot_us(self, true_us: float) -> int:
        return int(self.base_us + (true_us - self.frozen_us) * self.drift)


@dataclass
class World:
    """True time, the database's clock beside it, and the newest group."""

    chance: random.Random
    true_us: float = 0.0
    database_offset_us: float = 0.0
    newest: NewestGroup = field(default_factory=lambda: NewestGroup(0, 0, ""))
    machines: list[Machine] = field(default_factory=list)
    behind_us: float = 0.0
    ahead_us: float = 0.0

    def database_us(self) -> int:
        return int(self.database_offset_us + self.true_us)

    def group(self, machine: Machine, rule: "Rule" = judge) -> None:
        """A machine commits a group."""
        sent = machine.boot_us(self.true_us)
        database = self.database_us()
        received = sent + self.chance.randrange(100, 3_000)
        elapsed = rule(self.newest, database, machine.own, sent, received)
        assert elapsed >= self.newest.elapsed_us, "the clock went back"
        machine.own = Reading(elapsed, sent, received)
        self.newest = NewestGroup(elapsed, database, "")
        lead = elapsed - self.true_us
        self.behind_us, self.ahead_us = max(self.behind_us, -lead), max(self.ahead_us, lead)


Rule = type(judge)


def life(seed: int, rule: "Rule" = judge, *, freezes: bool = True) -> World:
    """Some minutes of one to three gateways; each commits a group a second at least."""
    chance = random.Random(seed)  # noqa: S311 - a life is known by its seed
    world = World(chance, database_offset_us=chance.uniform(-1e9, 1e9))
    world.newest = NewestGroup(0, world.database_us(), "")
    world.machines = [
        Machine(1 + chance.uniform(-100, 100) / 1e6, chance.uniform(0, 1e12)) for _ in range(chance.choice((1, 2, 3)))
    ]
    for machine in world.machines:
        world.group(machine, rule)
    for _ in range(300):
        world.true_us += chance.uniform(1e4, 0.9e6)
        if chance.random() < 0.03:
            world.database_offset_us += chance.choice(STEPS) * SECOND
        if chance.random() < 0.05:
            world.database_offset_us += chance.uniform(-150, 150)
        due = max(world.machines, key=lambda machine: age(machine, world.true_us))
        if freezes and len(world.machines) > 1 and chance.random() < 0.03:
            freeze(world, due, chance.uniform(1, 90), rule)
        if chance.random() < 0.02:
            # The database is away for everybody, and may come back with another clock.
            world.true_us += chance.uniform(1, 40) * SECOND
            world.database_offset_us += chance.uniform(-600, 600) * SECOND
        for machine in world.machines:
            if machine is due or age(machine, world.true_us) > SECOND:
                world.group(machine, rule)
    return world


def age(machine: Machine, true_us: float) -> float:
    return machine.boot_us(true_us) - (machine.own.received_us if machine.own else 0)


def freeze(world: World, frozen: Machine, seconds: float, rule: "Rule") -> None:
    """One machine stands still while the others go on, and then writes as they do."""
    others = [machine for machine in world.machines if machine is not frozen]
    for _ in range(int(seconds / 0.8) + 1):
        world.true_us += 0.8 * SECOND
        frozen.frozen_us += 0.8 * SECOND
        for machine in others:
            world.group(machine, rule)
    world.group(frozen, rule)


@pytest.mark.parametrize("block", range(4))
def test_the_clock_is_never_far_behind_and_no_step_moves_it(block: int) -> None:
    for seed in range(block * 100, block * 100 + 100):
        world = life(seed)
        assert world.behind_us < 1.0 * SECOND, (seed, world.behind_us)
        assert world.ahead_us < 90 * SECOND, (seed, world.ahead_us)


def test_a_freeze_and_a_database_that_is_away_at_once_hide_that_time_until_another_gateway_writes() -> None:
    world = World(random.Random(1), machines=[Machine(1, 0), Machine(1, 0)])  # noqa: S311 - as above
    frozen, other = world.machines
    for machine in world.machines:
        world.group(machine)
    world.true_us += 20 * SECOND
    frozen.frozen_us = 20 * SECOND
    world.database_offset_us -= 600 * SECOND
    world.group(frozen)
    assert world.behind_us > 19 * SECOND
    world.group(other)
    assert world.newest.elapsed_us > world.true_us - SECOND


def alone_by_the_database(newest: NewestGroup, database_us: int, _own: object, _sent: int, _received: int) -> int:
    return newest.elapsed_us + max(0, database_us - newest.database_us)


def alone_by_the_boot(newest: NewestGroup, _database: int, own: Reading | None, sent_us: int, _received: int) -> int:
    return max(newest.elapsed_us, own.elapsed_us + sent_us - own.received_us) if own else newest.elapsed_us


@pytest.mark.parametrize("rule", [alone_by_the_database, alone_by_the_boot])
def test_either_clock_alone_is_found_out(rule: "Rule") -> None:
    worst = max(max(world.behind_us, world.ahead_us / 90) for world in (life(seed, rule) for seed in range(60)))
    assert worst > 1.0 * SECOND


def test_a_group_is_vouched_for_two_seconds() -> None:
    newest = NewestGroup(5, 1_000_000, "")
    assert is_vouched(newest, 3_000_000)
    assert not is_vouched(newest, 3_000_001)
    assert not is_vouched(newest, 999_999)


def test_nobody_who_knows_nothing_makes_the_clock_go_back() -> None:
    assert judge(NewestGroup(7, 100, ""), 50, None, 0, 0) == 7
    assert judge(NewestGroup(7, 100, ""), 150, None, 0, 0) == 57
