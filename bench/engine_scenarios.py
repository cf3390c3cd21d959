"""SQLite beside PostgreSQL with one gateway and with two, in turn, round by round. Both lie on the same disk, and both
flush every commit.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil

from bench import postgres
from bench.installation import Installation, Measured, in_turn
from bench.processes import gateway, measured
from bench.result import Result, percentile
from bench.scenarios import Size

SQLITE, ONE, TWO, WITHIN, ACROSS = "SQLite", "one gateway", "two gateways", "one of two gateways", "across two gateways"
TOLD: Final = None
"""No goal: what another engine costs is told and not judged."""


def engines(size: Size, folder: Path) -> list[Result]:
    """Submissions, wake-ups and serial cycles on either engine. Raises Skipped where no PostgreSQL is at hand."""
    with installations(folder) as ways:

        def of(kind: str, amount: float, *names: str) -> dict[str, Measured]:
            return in_turn(size.rounds, kind, amount, {name: ways[name] for name in names})

        # The submissions come last: they leave queues behind.
        wakeups = of("wakeup", size.leases, SQLITE, ONE, WITHIN, ACROSS)
        cycles = of("cycle", size.seconds, SQLITE, ONE, ACROSS)
        submits = of("submit", size.seconds, SQLITE, ONE, TWO)
    return [
        *rates("durable submits, 32 callers", submits),
        *processor_time("a submit", submits),
        *times("submit to lease in hand", wakeups),
        *rates("serial cycle", cycles),
        *processor_time("a serial cycle", cycles),
    ]


@contextmanager
def installations(folder: Path) -> Iterator[Mapping[str, Installation]]:
    """SQLite with its gateway, a database with one gateway, and another one on the same server with two."""
    with ExitStack() as stack:
        server = stack.enter_context(postgres.server(folder))
        of_server = psutil.Process(server.program.process.pid)

        def running(name: str, settings: Mapping[str, str]) -> tuple[str, psutil.Process]:
            target, program = stack.enter_context(gateway(folder / name, settings))
            return target, psutil.Process(program.process.pid)

        def on_database(name: str) -> Mapping[str, str]:
            return {"RAKUTEN_GATEWAY_DB_URL": server.new_database(name)}

        def load_at(*targets: str) -> Callable[[str, float], Any]:
            return lambda kind, amount: measured("load", kind, amount, *targets)

        embedded, of_embedded = running("sqlite", {})
        alone, of_alone = running("alone", on_database("one"))
        shared = on_database("two")
        (first, of_first), (second, of_second) = (running(name, shared) for name in ("first", "second"))
        of_two = partial(Installation, gateways=(of_first, of_second), server=of_server)
        yield {
            SQLITE: Installation(load_at(embedded), (of_embedded,), None),
            ONE: Installation(load_at(alone), (of_alone,), of_server),
            TWO: of_two(load_at(first, second)),
            WITHIN: of_two(load_at(first)),
            ACROSS: of_two(load_at(first, second)),
        }


def beside_sqlite(of_all: Mapping[str, Measured]) -> Iterator[tuple[str, Measured, Measured]]:
    """Each way to run on PostgreSQL: its name, what was measured of SQLite, and of it."""
    for name, ours in of_all.items():
        if name != SQLITE:
            yield f"PostgreSQL, {name} (beside SQLite)", of_all[SQLITE], ours


def rates(what: str, of_all: Mapping[str, Measured]) -> Iterator[Result]:
    """How many a second."""
    for name, sqlite, ours in beside_sqlite(of_all):
        before, after = median(sqlite.per_second), median(ours.per_second)
        yield Result(f"{what}, {name}", f"{before:,.0f}/s", f"{after:,.0f}/s", after / before, TOLD, True, "x")


def times(what: str, of_all: Mapping[str, Measured]) -> Iterator[Result]:
    """How long it took."""
    for name, sqlite, ours in beside_sqlite(of_all):
        for percent in (50, 99):
            before, after = (percentile(each.milliseconds, percent) for each in (sqlite, ours))
            row = f"{what}, p{percent}, {name}"
            yield Result(row, f"{before:.2f} ms", f"{after:.2f} ms", after / before, TOLD, False, "x")


def processor_time(what: str, of_all: Mapping[str, Measured]) -> Iterator[Result]:
    """Processor time of the gateways, and of the database server beside them; the ratio is of both together."""
    for name, sqlite, ours in beside_sqlite(of_all):
        before, gateways, server = median(sqlite.gateways_ms), median(ours.gateways_ms), median(ours.server_ms)
        row = f"CPU of {what}, gateway + database server, {name}"
        value = (gateways + server) / before
        yield Result(row, f"{before:.2f} ms", f"{gateways:.2f} + {server:.2f} ms", value, TOLD, False, "x")


ENGINE_SCENARIOS: Final[dict[str, Callable[[Size, Path], list[Result]]]] = {"engines": engines}
