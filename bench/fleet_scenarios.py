"""Thousands of accounts, and thousands of workers that wait, each for its own: does the right one get its order as soon
as where few wait, and what does the waiting cost?
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import psutil

from bench import postgres
from bench.processes import NONE, gateway, measured
from bench.result import Result, percentile
from bench.scenarios import Size
from demo.programs import Program

FEW: Final = 10
FLEET_SECONDS: Final = 600
SCOPE: Final[Mapping[str, str]] = {"RAKUTEN_LEASE_SCOPE": "account"}


def on_sqlite(size: Size, folder: Path) -> list[Result]:
    """The fleet on SQLite."""
    return fleet("SQLite", size, folder)


def on_postgresql(size: Size, folder: Path) -> list[Result]:
    """The fleet on PostgreSQL. Raises Skipped where none is at hand."""
    with postgres.server(folder) as server:
        settings = {"RAKUTEN_GATEWAY_DB_URL": server.new_database("fleet")}
        return fleet("PostgreSQL", size, folder, settings, server.program)


def fleet(
    engine: str, size: Size, folder: Path, settings: Mapping[str, str] = NONE, server: Program | None = None
) -> list[Result]:
    """A few workers that wait, and then thousands, at one gateway."""
    with gateway(folder, {**SCOPE, **settings}) as (target, program):
        pids = [each.process.pid for each in (program, server) if each is not None]
        empty = psutil.Process(pids[0]).memory_info().rss / 2**20

        def run(workers: int) -> Mapping[str, Any]:
            said: Mapping[str, Any] = measured(
                "fleet_load", "fleet", workers, size.leases, 2 * size.seconds, target, *pids, seconds=FLEET_SECONDS
            )
            return said

        few, many = run(FEW), run(size.fleet)
    what = f"{engine}, {size.fleet:,} workers wait, {2 * size.fleet:,} targets"
    beside = f"{what} (beside {FEW} and {2 * FEW})"
    middle, top = ((percentile(few["ms"], percent), percentile(many["ms"], percent)) for percent in (50, 99))
    a_stream = (many["memory_mib"] - empty) / size.fleet * 1024
    return [
        Result(f"{beside}: submit to lease, p50", ms(middle[0]), ms(middle[1]), middle[1] / middle[0], 2, False, "x"),
        Result(f"{beside}: submit to lease, p99", ms(top[0]), ms(top[1]), top[1] / top[0], None, False, "x"),
        Result(
            f"{beside}: whole orders, 32 callers", f"{few['per_second']:,.0f}/s", f"{many['per_second']:,.0f}/s",
            many["per_second"] / few["per_second"], None, True, "x",
        ),
        Result(
            f"{beside}: CPU of an order{with_server(many['cpu_ms'])}", added(few["cpu_ms"], "ms"),
            added(many["cpu_ms"], "ms"), sum(many["cpu_ms"]) / sum(few["cpu_ms"]), None, False, "x",
        ),
        Result(
            f"{what}: share of a core while idle{with_server(many['idle'])}", added(few["idle"], "%"),
            added(many["idle"], "%"), sum(many["idle"]), 5, False, "%",
        ),
        Result(
            f"{what}: memory a stream, beyond the empty gateway", f"{empty:.0f} MiB", f"{many['memory_mib']:.0f} MiB",
            a_stream, 60, False, "KiB",
        ),
        Result(
            f"{what}: all streams opened", "", f"{many['open_seconds']:.1f} s", many["open_seconds"], None, False, "s"
        ),
    ]  # fmt: skip


def ms(value: float) -> str:
    """A time."""
    return f"{value:.2f} ms"


def added(values: list[float], unit: str) -> str:
    """What the gateway takes, and what the database server takes beside it."""
    return f"{' + '.join(f'{value:.2f}' for value in values)} {unit}"


def with_server(values: list[float]) -> str:
    """What the second figure is, if there is one."""
    return ", gateway + database server" if len(values) > 1 else ""


FLEET_SCENARIOS: Final[dict[str, Callable[[Size, Path], list[Result]]]] = {
    "fleet": on_sqlite,
    "fleet-postgresql": on_postgresql,
}
