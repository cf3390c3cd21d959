"""The benchmarks. Servers and clients are processes of their own; floor and gateway take turns, round by round, so that
whatever else the machine does meets both.
"""

import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil

from bench.backlog import fill
from bench.cpu import share_of_a_core
from bench.processes import REPOSITORY, floor, gateway, measured
from bench.result import Result, percentile
from demo.programs import started


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured. `scale` divides the number of tasks in the large database."""

    rounds: int
    seconds: float
    wakeups: int
    leases: int
    starts: int
    waiters: int
    fleet: int
    scale: int


FULL: Final = Size(rounds=4, seconds=2.5, wakeups=200, leases=100, starts=3, waiters=2000, fleet=5000, scale=1)
QUICK: Final = Size(rounds=2, seconds=1.5, wakeups=150, leases=60, starts=1, waiters=500, fleet=250, scale=20)


def side_by_side(kind: str, amount: float, rounds: int, folder: Path) -> tuple[list[Any], list[Any]]:
    """The same load on floor and gateway in turn; what each round of either measured."""
    with floor(folder) as floor_target, gateway(folder) as (gateway_target, _program):
        pairs = [
            (measured("load", kind, amount, floor_target), measured("load", kind, amount, gateway_target))
            for _ in range(rounds)
        ]
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def submits(size: Size, folder: Path) -> list[Result]:
    """Durable submissions of 32 callers."""
    floors, ours = side_by_side("submit", size.seconds, size.rounds, folder)
    of_floor = median(each["per_second"] for each in floors)
    of_ours = median(each["per_second"] for each in ours)
    return [
        Result(
            "durable submits, 32 callers",
            f"{of_floor:,.0f}/s",
            f"{of_ours:,.0f}/s",
            of_ours / of_floor,
            0.8,
            at_least=True,
            unit="x",
        )
    ]


def wakeups(size: Size, folder: Path) -> list[Result]:
    """From a submission on an idle queue to the lease in the waiting worker's hand."""
    floors, ours = side_by_side("wakeup", size.wakeups, size.rounds, folder)
    results = []
    for percent, goal in ((50, 1.6), (99, 3.0)):
        of_floor = percentile([value for each in floors for value in each["ms"]], percent)
        of_ours = percentile([value for each in ours for value in each["ms"]], percent)
        name = f"submit to lease in hand, idle queue, p{percent}"
        results.append(
            Result(name, f"{of_floor:.2f} ms", f"{of_ours:.2f} ms", of_ours / of_floor, goal, at_least=False, unit="x")
        )
    return results


def cycles(size: Size, folder: Path) -> list[Result]:
    """Whole orders, one after the other."""
    floors, ours = side_by_side("cycle", size.seconds, size.rounds, folder)
    of_floor = median(each["per_second"] for each in floors)
    of_ours = median(each["per_second"] for each in ours)
    return [
        Result(
            "serial cycle: submit, lease, ack, 2 reports",
            f"{of_floor:,.0f}/s",
            f"{of_ours:,.0f}/s",
            of_ours,
            250,
            at_least=True,
            unit="/s",
        )
    ]


def large_database(size: Size, folder: Path) -> list[Result]:
    """Start-up and leases on a database with a long past, against a small one."""
    ended, queued = 1_000_000 // size.scale, 100_000 // size.scale
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
        command = [sys.executable, "-m", "bench.load", "idle", str(size.waiters), target]
        with started("waiters", command, {"PYTHONPATH": str(REPOSITORY)}, folder=folder) as clients:
            clients.wait_until(lambda: "waiting" in clients.log.read_text())
            used = share_of_a_core(server, 2 * size.seconds + 4)
            clients.check()
            memory = server.memory_info().rss / 2**20
    name = f"{size.waiters:,} idle lease streams"
    return [
        Result(f"{name}, share of a core", "", f"{used:.1f} %", used, 5, at_least=False, unit="%"),
        Result(f"{name}, memory", "", f"{memory:.0f} MiB", memory, 150, at_least=False, unit="MiB"),
    ]


SCENARIOS: Final[dict[str, Callable[[Size, Path], list[Result]]]] = {
    "submit": submits,
    "wakeup": wakeups,
    "cycle": cycles,
    "large": large_database,
    "waiters": waiters,
}
