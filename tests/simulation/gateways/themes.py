"""Kinds of trouble for several gateways on one database."""

from dataclasses import dataclass

from tests.simulation.network import Weather
from tests.simulation.themes import AT_THE_CLICK, BEFORE_THE_CLICK, Blow, Theme
from tests.simulation.worker_machine import ASKING
from worker.failpoints import FailpointName as At

_ANYWHERE = (*BEFORE_THE_CLICK, At.PERMITTED, At.CLICKED, At.ORDERED_REPORTED, At.TERMINAL_REPORTED)


@dataclass(frozen=True, slots=True)
class Shared:
    """What a theme says of the gateways and their database. `moves`: how likely a client goes to another gateway with
    its next call; the others are chances of each commit, notification and round trip.
    """

    theme: Theme
    moves: float = 0.3
    unknown: float = 0.0
    lose_notes: float = 0.0
    slow: float = 0.0


THEMES = (
    Shared(
        Theme(
            "commits without an answer",
            (Blow("unknown_commit", (ASKING, *_ANYWHERE), again=True, chance=0.3),),
            tasks=6, person_gap=5.0,
        ),
        unknown=0.04,
    ),
    Shared(
        Theme(
            "gateways that stand still in a group",
            (Blow("freeze_in_group", (ASKING, *_ANYWHERE), (0.5, 70.0), again=True, chance=0.5),),
            tasks=5, person_gap=5.0, strikes=("freeze_in_group",), gap=12.0,
        ),
        slow=0.02,
    ),
    Shared(
        Theme(
            "a second permit elsewhere",
            (
                Blow("crash", (At.PERMITTED,), chance=0.9, times=2),
                Blow("crash_gateway", (At.PERMITTED, At.VERIFIED), chance=0.5),
                Blow("step_gateways", (At.ACKNOWLEDGED, At.VERIFIED), again=True, chance=0.6),
            ),
            waits=True, length=170.0, person_gap=4.0, tasks=3, spread=5.0,
        ),
        moves=0.5,
    ),
    Shared(
        Theme(
            "clocks that are set",
            (
                Blow("step_database", (At.ACKNOWLEDGED, At.PERMITTED), again=True, chance=0.5),
                Blow("step_gateways", (At.ACKNOWLEDGED, At.CONFIRMED, At.PERMITTED), again=True, chance=0.8),
                Blow("freeze", BEFORE_THE_CLICK, (20.0, 60.0), chance=0.7),
                Blow("crash", AT_THE_CLICK, chance=0.5),
            ),
            tasks=4, person_gap=4.0, strikes=("step_database", "step_clock"), gap=7.0,
        ),
        moves=0.6,
    ),
    Shared(
        Theme(
            "streams that were left",
            (
                Blow("freeze", (At.LEASED,), (3.0, 9.0), again=True, chance=0.2),
                Blow("crash", (ASKING,), again=True, chance=0.05),
            ),
            gateway=Weather(slow=0.1, reset=0.8, longest=1.0),
            tasks=8, spread=110.0, length=150.0, person_gap=4.0,
        ),
        moves=0.7,
    ),
    Shared(
        Theme("hints that are lost", strikes=("lose_notifications",), tasks=8, spread=110.0, length=150.0, gap=15.0),
        lose_notes=0.8,
        moves=0.4,
    ),
    Shared(
        Theme(
            "leaders that come and go",
            (Blow("freeze", BEFORE_THE_CLICK, (33.0, 60.0), chance=0.6),),
            strikes=("freeze_leader", "crash_gateway", "freeze_gateway"), gap=15.0, tasks=4, person_gap=5.0,
        ),
    ),
    Shared(
        Theme(
            "a database that goes away",
            (
                Blow("cut_database", _ANYWHERE, (1.0, 40.0), again=True, chance=0.4),
                Blow("lose_connection", (ASKING, *_ANYWHERE), again=True, chance=0.4),
            ),
            strikes=("restart_database", "lose_connection", "cut_database"), gap=12.0, tasks=5, person_gap=5.0,
        ),
        unknown=0.02,
    ),
    Shared(
        Theme(
            "a pause at another gateway",
            (
                Blow("freeze", (At.CONFIRMED,), (0.5, 4.0), again=True),
                Blow("pause", (At.CONFIRMED,), (3.0, 12.0), again=True),
            ),
            strikes=("pause",), gap=5.0, person_gap=1_000.0, tasks=5,
        ),
        slow=0.15,
        moves=0.6,
    ),
)  # fmt: skip

WITHOUT = 3
"""So many of the seeds that follow each other have no theme, but any faults at any time."""
ROUND = len(THEMES) + WITHOUT


def shared_theme_of(seed: int) -> Shared | None:
    """What a run with several gateways looks hard at."""
    number = seed % ROUND
    return THEMES[number] if number < len(THEMES) else None
