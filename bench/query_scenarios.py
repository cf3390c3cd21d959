"""The benchmarks of account queries: a long past costs nothing, and neither queue slows the other down."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Final

from bench.processes import gateway, measured
from bench.query_backlog import fill_queries
from bench.result import Result
from bench.scenarios import Size

SMALL: Final = 1_000
LARGE_ENDED: Final = 100_000
LARGE_QUEUED: Final = 10_000


def many_queries(size: Size, folder: Path) -> list[Result]:
    """Leases and lists on a database with many queries, against one with few."""
    for name, ended, queued in (("small", SMALL, SMALL), ("large", LARGE_ENDED, LARGE_QUEUED)):
        (folder / name).mkdir(parents=True)
        fill_queries(folder / name / "gateway.db", ended=ended, queued=queued)
    times: dict[str, list[list[float]]] = {}
    with ExitStack() as stack:
        targets = [stack.enter_context(gateway(folder / name))[0] for name in ("small", "large")]
        for kind in ("lease", "list"):
            times[kind] = measured("query_load", kind, size.rounds * size.leases, *targets)
    return [
        Result(
            f"query {kind}, {LARGE_ENDED:,} ended + {LARGE_QUEUED:,} queued (beside {SMALL:,} of each)",
            f"{median(small):.2f} ms",
            f"{median(large):.2f} ms",
            median(large) / median(small),
            1.2,
            at_least=False,
            unit="x",
        )
        for kind, (small, large) in times.items()
    ]


def both_queues(size: Size, folder: Path) -> list[Result]:
    """Serial cycles of each queue alone, and beside the other."""
    with gateway(folder) as (target, _program):
        rates = measured("query_load", "beside", 4 * size.seconds, target)
    names = {
        "orders": "serial order cycles beside 100 queries in flight (beside none)",
        "queries": "serial query cycles beside an order in flight (beside none)",
    }
    return [
        Result(name, f"{alone:,.0f}/s", f"{beside:,.0f}/s", beside / alone, 0.9, at_least=True, unit="x")
        for kind, name in names.items()
        for alone, beside in [rates[kind]]
    ]


QUERY_SCENARIOS: Final[dict[str, Callable[[Size, Path], list[Result]]]] = {
    "queries": many_queries,
    "beside": both_queues,
}
