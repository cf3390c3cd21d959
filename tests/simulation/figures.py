"""What many runs are counted by, told by `make test` and `make simulate`, and what they must have reached."""

from collections import Counter
from collections.abc import Mapping

from tests.simulation.layout import World

NAMES = (
    "gateway crashes", "worker crashes", "freezes", "cuts", "full disks", "commits of unknown outcome", "lost requests",
    "lost answers", "duplicated requests", "event submit", "event lease", "event undo", "event expire",
    "event expire_now", "event reclaim", "event requeue", "event withdraw", "event resolve", "event report_refused",
    "event permit", "second permits", "clicks", "orders placed", "payments", "duplicates",
)  # fmt: skip
_BY_ANY = (
    "second permits", "recovered tasks permitted", "not_ordered verdicts", "event permit_refused",
    "lost permit answers", "permits asked for too late", "clicks kept back by their record",
    "ended tasks offered again", "leases that came twice", "leases over REST", "event undo", "event withdraw",
    "event expire_now", "event report_refused", "event report_after_end", "strangers' orders seen",
    "looks at orders alike", "pages turned", "leftovers emptied", "restores", "commits of unknown outcome",
    "duplicated requests", "freezes", "cuts", "full disks",
)  # fmt: skip
MUST_BE_REACHED: Mapping[World, tuple[str, ...]] = {
    World.ALONE: _BY_ANY,
    World.ACCOUNTS: (
        "second permits", "recovered tasks permitted", "event undo", "event withdraw", "event expire",
        "slots occupied at once", "leases, a slot an account", "leases, a slot a site", "leases, a slot for all",
        "reclaims for other accounts refused", "orders with a named account", "orders on a second site",
        "looks at orders alike", "leftovers emptied",
    ),
    World.GATEWAYS: (
        "second permits", "second permits across gateways", "recovered tasks permitted", "event expire",
        "leases renewed at another gateway", "leases of orders filed at another gateway",
        "workers that wait at another gateway", "notifications across gateways", "notifications lost",
        "unknown commits: not made", "unknown commits: made", "unknown commits: made late",
        "unknown commits: made without its standby", "connections lost in a group",
        "gateways cut off from the database", "restarts of the database", "gateways frozen in a group",
        "groups of frozen gateways ended", "waits for the writer's lock", "leaders changed", "leaders frozen",
        "clocks of the database set", "clocks of gateways set", "reclaims for other accounts refused",
        "slots occupied at once",
    ),
    World.CONDITIONS: (
        "orders under a cap", "orders at their cap, to the yen", "permits refused over a cap",
        "permits refused for one yen", "recovered tasks permitted",
        "cancels taken before the permit", "cancels that came too late", "permits refused after a cancel",
        "permits refused for dry runs", "permits refused as too late", "dry runs ended", "tasks ended as too late",
        "leases of tasks that were not to be taken before", "permits under a budget", "orders under a budget",
        "permits for all that was left of a budget", "permits refused by a budget",
        "permits refused by a budget for one yen", "permits in a later period of a budget",
        "amounts of budgets released", "permits with an approval", "permits at the approved total, to the yen",
        "orders denied", "approvals that ran out in the queue", "permits refused: approval_expired",
    ),
}  # fmt: skip
"""What a hundred runs of each kind of world must have come to: where one of these never happens, what guards it is not
tried."""


def told(runs: int, seconds: float, counts: Mapping[str, int]) -> str:
    """Runs, their virtual length in seconds, and what happened in them; "duplicates 0" is in it."""
    counts = Counter(counts)
    return f"runs {runs:,}, virtual hours {seconds / 3600:,.1f}, {_listed(NAMES, counts)}"


def reached(counts: Mapping[str, int]) -> str:
    """How often the runs came to what they must come to."""
    names = dict.fromkeys(name for of_world in MUST_BE_REACHED.values() for name in of_world)
    return f"reached: {_listed(tuple(names), Counter(counts))}"


def not_reached(world: World, counts: Mapping[str, int]) -> list[str]:
    """What never happened in runs of this kind of world, and should have."""
    return [name for name in MUST_BE_REACHED[world] if not counts.get(name)]


def _listed(names: tuple[str, ...], counts: Counter[str]) -> str:
    return ", ".join(f"{name.removeprefix('event ')} {counts[name]:,}" for name in names)
