"""Kinds of trouble for orders with conditions: what one forbids comes close, or to pass while an order waits."""

from tests.simulation.network import Weather
from tests.simulation.themes import BEFORE_THE_CLICK, PERMIT, Blow, Theme
from worker.failpoints import FailpointName as At

THEMES = (
    Theme(
        "prices that change under a cap",
        (Blow("raise_price", (At.ACKNOWLEDGED, At.CART_ADDED, At.CART_CHECKED, At.CONFIRMED), again=True, chance=0.5),),
        tasks=6,
        spread=20.0,
    ),
    Theme(
        "a price that changes in a pause",
        (
            Blow("raise_price", (At.CONFIRMED,), again=True, chance=0.7),
            Blow("pause", (At.CONFIRMED,), (3.0, 12.0), again=True),
        ),
        person_gap=1_000.0,
        tasks=5,
        spread=20.0,
    ),
    Theme(
        "conditions and a permit whose answer is lost",
        (Blow("trouble", (At.CONFIRMED,), again=True, step=PERMIT, weather=Weather(lost_answer=0.6)),),
        tasks=5,
        spread=20.0,
    ),
    Theme(
        "a time that passes while the order is in hand",
        (Blow("freeze", (*BEFORE_THE_CLICK, At.CONFIRMED), (3.0, 20.0), again=True, chance=0.9),),
        tasks=4,
        length=200.0,
        spread=150.0,
    ),
    Theme(
        "conditions of recovered tasks",
        (
            Blow("crash", (*BEFORE_THE_CLICK, At.PERMITTED), chance=0.6),
            Blow("raise_price", (At.ACKNOWLEDGED,), again=True, chance=0.4),
        ),
        person_gap=4.0,
        approvals=0.5,
        tasks=4,
    ),
)

WITHOUT = 2
"""So many of the seeds that follow each other have no theme, but any faults at any time."""
ROUND = len(THEMES) + WITHOUT


def condition_theme_of(seed: int) -> Theme | None:
    """The theme of a run with conditions."""
    number = seed % ROUND
    return THEMES[number] if number < len(THEMES) else None
