"""Kinds of trouble that a run looks hard at. A theme comes again every so many seeds: a hundred runs see each."""

from dataclasses import dataclass

from tests.simulation.network import CALM, Weather
from tests.simulation.worker_machine import ASKING
from worker.failpoints import FailpointName as At


@dataclass(frozen=True, slots=True)
class Blow:
    """What strikes at a failpoint of a worker: the name of a method of `Strikes`, for so many seconds where it lasts.

    One of `at` is chosen at each start of the worker. `again`: at every passing, not only at the first; `times`: so
    often at most in the whole run.
    """

    what: str
    at: tuple[str, ...]
    seconds: tuple[float, float] = (0.0, 0.0)
    chance: float = 1.0
    again: bool = False
    times: int = 1_000
    weather: Weather = CALM
    step: str = "submit"
    """The step on the site, or the method of the gateway, that meets this weather."""
    not_before: float = 0.0
    """Seconds of the run."""


@dataclass(frozen=True, slots=True)
class Theme:
    """One kind of trouble. `strikes` come at any time, every `gap` seconds or so; `person_gap`: how often the person
    looks in; `approvals`: how likely orders need one, in a world of conditions; `alike`: the tasks want the same;
    `dear`: what they want often costs more than they allow; `shared`: two workers use one journal, in a place where
    locks do not hold; `scripts`: somebody buys by hand, over REST.
    """

    name: str
    blows: tuple[Blow, ...] = ()
    gateway: Weather = CALM
    shop: Weather = CALM
    slow_gateway_disk: float = 0.0
    slow_worker_disk: float = 0.0
    late_background_tasks: float = 0.0
    failing_commits: float = 0.0
    person_gap: float = 8.0
    approvals: float = 0.4
    gap: float = 6.0
    strikes: tuple[str, ...] = ()
    workers: int = 1
    tasks: int = 3
    alike: bool = False
    dear: bool = False
    shared: bool = False
    scripts: bool = False
    backed_up: bool = False
    """The gateway is backed up before anything is filed."""
    waits: bool = False
    """The person leaves a task alone until a click must soon show on the site."""
    length: float | None = None
    """Seconds until everything heals; None: any."""
    late: float = 0.0
    """Seconds after which all tasks but the first are filed."""
    spread: float | None = None
    """Seconds over which the tasks are filed; None: any."""
    strangers: int = 0
    workers_from: float = 0.0
    """Seconds after which our workers start."""


PERMIT = "RequestSubmitPermit"
BEFORE_THE_CLICK = (At.ACKNOWLEDGED, At.CART_ADDED, At.CART_CHECKED, At.CONFIRMED)
AT_THE_CLICK = (At.CONFIRMED, At.PERMITTED, At.PERMITTED, At.CLICK_RECORDED)
_SLOW_ANSWERS = Weather(slow=0.7, longest=9.0)
_NO_ANSWER = Weather(lost_request=0.1, lost_answer=0.75)
_NO_LIST = Weather(lost_answer=0.8)

THEMES = (
    Theme(
        "a late click",
        (
            Blow("freeze", (At.PERMITTED, At.CLICK_RECORDED), (6.0, 9.7), again=True),
            Blow("trouble", (At.CONFIRMED,), again=True, step=PERMIT, weather=Weather(slow=0.9, longest=2.4)),
        ),
        tasks=5,
    ),
    Theme(
        "a slow connection at the click",
        (Blow("trouble", (At.CLICK_RECORDED,), again=True, weather=Weather(connect=(8.0, 11.8))),),
        tasks=4,
    ),
    Theme(
        "a pause of a lease's length",
        (Blow("freeze", (*BEFORE_THE_CLICK, At.PERMITTED), (33.0, 44.0), again=True),),
        gateway=_SLOW_ANSWERS,
        tasks=4,
    ),
    Theme(
        "frozen, then out of reach",
        (Blow("freeze_and_cut", (At.ACKNOWLEDGED, At.ACKNOWLEDGED, At.CART_CHECKED), (30.0, 34.8), again=True),),
        gateway=Weather(slow=0.2, longest=2.0),
        person_gap=5.0,
        tasks=5,
        length=200.0,
    ),
    Theme(
        "the first worker comes back",
        (Blow("freeze", (*BEFORE_THE_CLICK, At.PERMITTED), (45.0, 90.0)),),
        person_gap=4.0,
        workers=2,
    ),
    Theme(
        "a clock that is set",
        (Blow("freeze", BEFORE_THE_CLICK, (33.0, 60.0)), Blow("set_back", BEFORE_THE_CLICK, again=True)),
        strikes=("set_back",),
        gap=4.0,
    ),
    Theme(
        "power lost at the click",
        (Blow("crash", (*AT_THE_CLICK, At.PERMITTED, At.CLICKED), chance=0.7),),
        person_gap=5.0,
        strikes=("crash_worker",),
        gap=15.0,
        strangers=3,
    ),
    Theme(
        "another journal",
        (Blow("crash", (*AT_THE_CLICK, At.CLICKED), chance=0.5),),
        person_gap=6.0,
        workers=2,
        tasks=4,
        alike=True,
    ),
    Theme(
        "a bad shop",
        (Blow("crash", (At.CART_ADDED, At.CONFIRMED, At.PERMITTED), chance=0.3),),
        shop=Weather(slow=0.1, lost_request=0.01, lost_answer=0.1, longest=12.0),
        strangers=8,
    ),
    Theme(
        "a list that cannot be read",
        (
            Blow("crash", (At.CART_ADDED, At.CONFIRMED, At.PERMITTED), chance=0.6),
            Blow("trouble", (At.ACKNOWLEDGED,), again=True, chance=0.6, step="list_orders", weather=_NO_LIST),
        ),
        person_gap=4.0,
        strangers=6,
    ),
    Theme(
        "no answer to the click",
        (
            Blow("trouble", (At.CLICK_RECORDED,), again=True, weather=_NO_ANSWER),
            Blow("crowd", (At.CLICK_RECORDED,), again=True, chance=0.5),
        ),
        person_gap=6.0,
        tasks=5,
    ),
    Theme(
        "reports overtake each other",
        (Blow("freeze", (At.ORDERED_REPORTED, At.CONFIRMED), (0.5, 4.0), again=True, chance=0.5),),
        gateway=Weather(slow=0.4, duplicate=0.6, longest=6.0),
        tasks=4,
    ),
    Theme(
        "a busy account",
        (
            Blow("fill_cart", (At.ACKNOWLEDGED,), again=True, chance=0.5),
            Blow("fill_cart", (At.CART_ADDED,), again=True, chance=0.2),
            Blow("fill_cart", (At.CART_CHECKED,), again=True, chance=0.6),
            Blow("crash", (At.CART_ADDED,), chance=0.3, times=1),
        ),
        shop=Weather(slow=0.3, longest=2.0),
        person_gap=5.0,
        tasks=5,
    ),
    Theme(
        "prices that change",
        (Blow("raise_price", (At.ACKNOWLEDGED, At.CART_ADDED, At.CART_CHECKED, At.CONFIRMED), again=True, chance=0.5),),
        tasks=5,
    ),
    Theme(
        "a full disk",
        (
            Blow("fill_disk", BEFORE_THE_CLICK, (0.05, 2.0), chance=0.4),
            Blow("crash", (At.CONFIRMED, At.PERMITTED), chance=0.6),
        ),
        gateway=Weather(slow=0.3, longest=3.0),
        strikes=("fill_disk_briefly",),
        gap=3.0,
        person_gap=5.0,
    ),
    Theme(
        "a disk that is full at the end",
        (
            Blow("crash", (At.CART_ADDED, At.CONFIRMED), times=3),
            Blow("fill_disk", (At.TERMINAL_REPORTED, At.TERMINAL_REPORTED, At.END_JOURNALLED), (0.5, 3.0), again=True),
        ),
        person_gap=3.0,
        tasks=4,
    ),
    Theme(
        "a pause",
        (
            Blow("freeze", (At.CONFIRMED,), (0.5, 4.0), again=True),
            Blow("pause", (At.CONFIRMED,), (3.0, 12.0), again=True),
        ),
        strikes=("pause",),
        gap=6.0,
        person_gap=1_000.0,
        tasks=4,
    ),
    Theme(
        "a lease in no hand",
        (
            Blow("freeze", (At.LEASED,), (6.0, 11.0), again=True, chance=0.9),
            Blow("crash", (ASKING,), again=True, chance=0.1),
        ),
        gateway=Weather(slow=0.1, reset=0.9, longest=1.0),
        slow_gateway_disk=0.6,
        late_background_tasks=30.0,
        person_gap=2.0,
        workers=2,
        tasks=6,
        length=180.0,
        spread=10.0,
    ),
    Theme(
        "broken streams",
        (
            Blow("freeze", (At.ACKNOWLEDGED,), (2.0, 9.0), again=True, chance=0.3),
            Blow("freeze", (At.LEASED,), (3.0, 9.0), again=True, chance=0.7),
            Blow("crash", (ASKING,), again=True, chance=0.1),
        ),
        gateway=Weather(slow=0.1, lost_answer=0.05, duplicate=0.1, reset=0.8, longest=2.0),
        slow_gateway_disk=0.6,
        late_background_tasks=10.0,
        tasks=6,
        spread=90.0,
    ),
    Theme(
        "a gateway out of reach at the permit",
        (
            Blow("cut", (At.CONFIRMED,), (3.0, 25.0), again=True, chance=0.5),
            Blow("trouble", (At.CONFIRMED,), again=True, step=PERMIT, weather=Weather(lost_answer=0.6)),
        ),
        tasks=5,
    ),
    Theme(
        "a slow disk under the journal",
        (Blow("crash", (At.PERMITTED, At.CLICK_RECORDED), chance=0.3),),
        slow_worker_disk=0.3,
        person_gap=6.0,
    ),
    Theme(
        "orders alike",
        (
            Blow("crash", (At.CLICKED, At.CLICKED, At.ORDER_JOURNALLED), times=1),
            Blow("crash", (At.CART_ADDED, At.CONFIRMED), chance=0.7, times=2),
            Blow("trouble", (At.CLICK_RECORDED,), again=True, chance=0.3, weather=Weather(lost_request=0.9)),
        ),
        person_gap=8.0,
        spread=20.0,
        length=160.0,
        workers=2,
        tasks=3,
        alike=True,
    ),
    Theme(
        "a look too early",
        (
            Blow("crash", (At.PERMITTED,), times=2),
            Blow("freeze", (At.VERIFIED,), (17.0, 30.0), again=True),
        ),
        waits=True,
        length=160.0,
        person_gap=4.0,
        tasks=2,
        spread=5.0,
    ),
    Theme(
        "strangers' orders",
        (
            Blow("crash", (At.PERMITTED, At.CLICKED, At.CONFIRMED), chance=0.6),
            Blow("crowd", (At.CLICKED, At.CLICK_RECORDED), again=True),
            Blow("alike_elsewhere", (At.ACKNOWLEDGED, At.CONFIRMED), chance=0.6, times=1),
            Blow("trouble", (At.CLICK_RECORDED,), chance=0.5, weather=_NO_ANSWER),
        ),
        person_gap=5.0,
        alike=True,
        strangers=9,
    ),
    Theme(
        "an end that is not heard",
        (
            Blow("raise_price", (At.ACKNOWLEDGED,), again=True, chance=0.5),
            Blow("cut", (At.END_JOURNALLED,), (30.0, 60.0), again=True),
            Blow("raise_price", (At.END_JOURNALLED,), again=True),
            Blow("crash", (At.TERMINAL_REPORTED,)),
        ),
        person_gap=4.0,
        dear=True,
        tasks=4,
    ),
    Theme(
        "a gateway put back",
        (
            Blow("back_up", (At.ACKNOWLEDGED, At.TERMINAL_REPORTED), chance=0.5),
            Blow(
                "restore",
                (At.CONFIRMED, At.PERMITTED, At.CLICK_RECORDED, At.CLICKED, At.ORDERED_REPORTED),
                again=True,
            ),
        ),
        person_gap=5.0,
        alike=True,
    ),
    Theme(
        "a gateway put back while its worker is away",
        (
            Blow(
                "restore_and_crash",
                (At.CART_ADDED, At.CONFIRMED, At.PERMITTED, At.CLICK_RECORDED),
                again=True,
                not_before=35.0,
            ),
        ),
        backed_up=True,
        person_gap=1_000.0,
        tasks=2,
        late=40.0,
        spread=80.0,
        alike=True,
    ),
    Theme(
        "one journal, two processes, a gateway put back",
        (Blow("freeze", (At.PERMITTED,), (7.0, 9.0)), Blow("restore", (At.PERMITTED,))),
        shared=True,
        backed_up=True,
        workers=2,
        tasks=1,
        person_gap=1_000.0,
    ),
    Theme(
        "a person who is too quick",
        (
            Blow("freeze", (At.CLICKED, At.ORDERED_REPORTED, At.CONFIRMED), (25.0, 40.0), again=True),
            Blow("expire", (At.ORDERED_REPORTED, At.CLICKED, At.CONFIRMED), again=True),
        ),
        person_gap=2.0,
        workers=2,
        tasks=4,
    ),
    Theme(
        "commits that fail",
        (Blow("fail_commits", (At.TERMINAL_REPORTED, At.ACKNOWLEDGED), again=True, chance=0.6),),
        failing_commits=0.01,
        person_gap=6.0,
        tasks=6,
    ),
    Theme(
        "asked to stop at the click",
        (
            Blow("stop", (At.CLICK_RECORDED,), (0.0, 1.0), again=True, chance=0.7),
            Blow("trouble", (At.CLICK_RECORDED,), again=True, weather=Weather(slow=1.0, longest=3.5)),
        ),
        person_gap=6.0,
        tasks=4,
    ),
    Theme(
        "workers of others",
        (Blow("crash", AT_THE_CLICK, chance=0.3),),
        scripts=True,
        workers_from=20.0,
        person_gap=10.0,
        tasks=5,
        length=180.0,
        spread=5.0,
    ),
)  # fmt: skip

WITHOUT = 6
"""So many of the seeds that follow each other have no theme, but any faults at any time."""
ROUND = len(THEMES) + WITHOUT
"""After so many seeds each theme has had its run."""


def theme_of(seed: int) -> Theme | None:
    """The theme of a run."""
    number = seed % ROUND
    return THEMES[number] if number < len(THEMES) else None
