"""What is wrong with the gateways of a database as a whole, and with others than the one that is asked."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from gateway.domain.health import GatewaysSeen, Problem, ProblemKind

LEADERLESS_AFTER: Final = timedelta(seconds=60)
"""A term is 15 s, and every living gateway asks for the next one within five more."""


def problems_of_gateways(seen: GatewaysSeen) -> Iterator[Problem]:
    """Yield what is wrong with any of the gateways, apart from what the one that is asked tells of itself."""
    for gateway in seen.gateways:
        if gateway.gone and gateway.silent_for is not None:
            yield Problem(
                ProblemKind.GATEWAY_GONE,
                f"gateway {gateway.name} has not been heard of for {gateway.silent_for.total_seconds():.0f} s and has "
                "not signed off: it has died, is frozen, or is cut off from the database; start it again",
            )
        elif not gateway.here:
            for problem in gateway.problems:
                yield Problem(problem.kind, f"gateway {gateway.name}: {problem.message}")
    if seen.leaderless_for > LEADERLESS_AFTER:
        yield Problem(
            ProblemKind.NO_LEADER,
            f"nobody has led the sweeps for {seen.leaderless_for.total_seconds():.0f} s: no lease expires by itself, "
            "no alert is raised and no callback is sent; see the gateways' logs for `sweep=`",
        )
