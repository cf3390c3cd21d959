"""Kinds of trouble for several accounts, whose workers share a gateway and nothing else."""

from tests.simulation.network import Weather
from tests.simulation.themes import AT_THE_CLICK, BEFORE_THE_CLICK, Blow, Theme
from tests.simulation.worker_machine import ASKING
from worker.failpoints import FailpointName as At

THEMES = (
    Theme(
        "accounts side by side",
        (Blow("freeze", (*BEFORE_THE_CLICK, At.PERMITTED), (1.0, 15.0), again=True, chance=0.4),),
        tasks=8,
        spread=30.0,
    ),
    Theme(
        "a worker of another account is asked",
        (Blow("crash", (*AT_THE_CLICK, At.CLICKED, At.CART_ADDED), chance=0.7),),
        person_gap=3.0,
        tasks=6,
        spread=20.0,
    ),
    Theme(
        "leases of several accounts in no hand",
        (
            Blow("freeze", (At.LEASED,), (3.0, 11.0), again=True, chance=0.7),
            Blow("crash", (ASKING,), again=True, chance=0.1),
        ),
        gateway=Weather(slow=0.1, lost_answer=0.05, reset=0.7, longest=2.0),
        slow_gateway_disk=0.5,
        late_background_tasks=15.0,
        person_gap=3.0,
        tasks=7,
        spread=60.0,
    ),
    Theme(
        "the same orders with several accounts",
        (
            Blow("crash", (At.CLICKED, At.ORDER_JOURNALLED, At.PERMITTED), chance=0.6),
            Blow("trouble", (At.CLICK_RECORDED,), again=True, chance=0.4, weather=Weather(lost_request=0.8)),
        ),
        person_gap=5.0,
        tasks=6,
        alike=True,
        spread=20.0,
    ),
    Theme(
        "a lease's length away, beside other accounts",
        (Blow("freeze", (*BEFORE_THE_CLICK, At.PERMITTED), (33.0, 60.0), again=True, chance=0.8),),
        gateway=Weather(slow=0.4, longest=6.0),
        person_gap=4.0,
        tasks=6,
    ),
)

WITHOUT = 3
"""So many of the seeds that follow each other have no theme, but any faults at any time."""
ROUND = len(THEMES) + WITHOUT


def account_theme_of(seed: int) -> Theme | None:
    """The theme of a run with several accounts."""
    number = seed % ROUND
    return THEMES[number] if number < len(THEMES) else None
