"""The benchmarks. Servers and clients are processes of their own; floor and gateway take turns, round by round, so that
whatever else the machine does meets both.
"""

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil

from bench.backlog import fill
from bench.cpu import share_of_a_core
from bench.installation import Installation, Measured, in_turn
from bench.processes import REPOSITORY, floor, gateway, measured
from bench.result import Result, compared, milliseconds, percentile, rate
from demo.programs import Program, started


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured. `scale` divides the number of tasks in the large database, a million."""

    rounds: int
    seconds: float
    wakeups: int
    leases: int
    starts: int
    waiters: int
    fleet: int
    scale: float


NORMAL: Final = Size(rounds=4, seconds=2.5, wakeups=200, leases=100, starts=3, waiters=2000, fleet=5000, scale=1)
QUICK: Final = Size(rounds=2, seconds=1.5, wakeups=150, leases=60, starts=1, waiters=500, fleet=250, scale=20)
FULL: Final = Size(rounds=4, seconds=2.5, wakeups=200, leases=100, starts=3, waiters=5000, fleet=5000, scale=0.1)

FLOOR, OURS = "floor", "order-gateway"


@contextmanager
def beside_the_floor(folder: Path) -> Iterator[Mapping[str, Installation]]:
    """The floor and the gateway, each for the same loads."""
    with floor(folder) as (floor_target, floor_program), gateway(folder) as (target, program):

        def installation(at: str, of: Program) -> Installation:
            return Installation(partial(_load, at), (psutil.Process(of.process.pid),), None)

        yield {FLOOR: installation(floor_target, floor_program), OURS: installation(target, program)}


def _load(target: str, kind: str, amount: float) -> Any:
    return measured("load", kind, amount, target)


def submits(size: Size, folder: Path) -> list[Result]:
    """Durable submissions of 32 and of 128 callers, and in batches."""
    with beside_the_floor(folder) as ways:
        single = in_turn(size.rounds, "submit", size.seconds, ways)
        many = in_turn(size.rounds, "many", size.seconds, ways)
        batch = in_turn(size.rounds, "batch", size.seconds, {OURS: ways[OURS]})
    return [
        _rates("durable submits, 32 callers", single, 0.75),
        _processor_time("a submit", single, 1.6),
        _rates("durable submits, 128 callers", many, 0.85),
        compared(
            "orders in batches of 100, 4 callers (beside single ones of the floor)",
            single[FLOOR].per_second, batch[OURS].per_second, 8, at_least=True, shown=rate,
        ),
    ]  # fmt: skip


def wakeups(size: Size, folder: Path) -> list[Result]:
    """From a submission on an idle queue to the lease in the waiting worker's hand."""
    with beside_the_floor(folder) as ways:
        rounds = [in_turn(1, "wakeup", size.wakeups, ways) for _ in range(size.rounds)]
    results = []
    for percent, goal in ((50, 1.5), (99, 2.0)):
        floors, ours = ([percentile(each[name].milliseconds, percent) for each in rounds] for name in (FLOOR, OURS))
        name = f"submit to lease in hand, idle queue, p{percent}"
        results.append(compared(name, floors, ours, goal, at_least=False, shown=milliseconds))
    return results


def cycles(size: Size, folder: Path) -> list[Result]:
    """Whole orders, one after the other."""
    with beside_the_floor(folder) as ways:
        of_all = in_turn(size.rounds, "cycle", size.seconds, ways)
    return [
        _rates("serial cycle: submit, lease, acknowledge, 2 reports", of_all, 0.6),
        _processor_time("a cycle", of_all, 2.0),
    ]


def _rates(what: str, of_all: Mapping[str, Measured], goal: float) -> Result:
    floors, ours = (of_all[name].per_second for name in (FLOOR, OURS))
    return compared(what, floors, ours, goal, at_least=True, shown=rate)


def _processor_time(what: str, of_all: Mapping[str, Measured], goal: float) -> Result:
    floors, ours = (of_all[name].gateways_ms for name in (FLOOR, OURS))
    return compared(f"CPU of the server for {what}", floors, ours, goal, at_least=False, shown=milliseconds)


def large_database(size: Size, folder: Path) -> list[Result]:
    """Start-up and leases on a database with a long past, against a small one."""
    ended, queued = int(1_000_000 / size.scale), int(100_000 / size.scale)
    for name, counts in (("small", (0, 1000)), ("large", (ended, queued))):
        (folder / name).mkdir(parents=True)
        fill(folder / name / "gateway.db", ended=counts[0], queued=counts[1])
    empty_starts, starts = [], []
    for number in range(size.starts):
        empty_starts.append(time_to_start(folder / f"empty-{number}"))
        starts.append(time_to_start(folder / "large"))
    small: list[float] = []
    large: list[float] = []
    with ExitStack() as stack:
        small_target, _ = stack.enter_context(gateway(folder / "small"))
        large_target, _ = stack.enter_context(gateway(folder / "large"))
        for _ in range(size.rounds):
            small += measured("load", "lease", size.leases, small_target)["ms"]
            large += measured("load", "lease", size.leases, large_target)["ms"]
    size_in_words = f"{ended:,} ended + {queued:,} queued"
    return [
        Result(
            f"lease, {size_in_words} (beside 1,000 queued)",
            f"{median(small):.2f} ms",
            f"{median(large):.2f} ms",
            median(large) / median(small),
            1.2,
            at_least=False,
            unit="x",
        ),
        Result(
            f"start-up, {size_in_words} (beside none)",
            f"{median(empty_starts):.2f} s",
            f"{median(starts):.2f} s",
            median(starts),
            2.0,
            at_least=False,
            unit="s",
        ),
    ]


def time_to_start(folder: Path) -> float:
    """Seconds from starting the gateway on this folder's database until it serves."""
    begun = time.perf_counter()
    with gateway(folder):
        return time.perf_counter() - begun


def waiters(size: Size, folder: Path) -> list[Result]:
    """What idle lease streams cost the gateway: share of one core, and memory."""
    with gateway(folder) as (target, program):
        server = psutil.Process(program.process.pid)
        empty = server.memory_info().rss
        command = [sys.executable, "-m", "bench.load", "idle", str(size.waiters), target]
        with started("waiters", command, {"PYTHONPATH": str(REPOSITORY)}, folder=folder) as clients:
            clients.wait_until(lambda: "waiting" in clients.log.read_text())
            used = share_of_a_core(server, 2 * size.seconds + 4)
            clients.check()
            full = server.memory_info().rss
    name = f"{size.waiters:,} idle lease streams"
    a_stream = (full - empty) / size.waiters / 2**10
    return [
        Result(f"{name}, share of a core", "", f"{used:.1f} %", used, 5, at_least=False, unit="%"),
        Result(
            f"{name}, memory of each beyond the empty gateway", f"{empty / 2**20:.0f} MiB", f"{full / 2**20:.0f} MiB",
            a_stream, 60, at_least=False, unit="KiB",
        ),
    ]  # fmt: skip


SCENARIOS: Final[dict[str, Callable[[Size, Path], list[Result]]]] = {
    "submit": submits,
    "wakeup": wakeups,
    "cycle": cycles,
    "large": large_database,
    "waiters": waiters,
}
