"""What a page of the console costs with 1,000 tasks and with 1,000,000: a browser's request, signed in, to its end."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Final

import httpx

from bench.http_scenarios import http_gateway
from bench.load import TOKEN
from bench.result import Result
from bench.scenarios import Size
from bench.search_scenarios import FEW, database
from bench.target_scenarios import ROUNDS

GOAL: Final = 1.2

PAGES: Final = {
    "decisions": "/console",
    "tasks": "/console/tasks",
    "tasks of a status": "/console/tasks?status=needs_human",
    "alerts": "/console/alerts",
}


def pages(size: Size, folder: Path) -> list[Result]:
    """Compare each page of a small database and of a large one, in turn."""
    many = int(1_000_000 / size.scale)
    for name, count in (("few", FEW), ("many", many)):
        with database(folder / name / "gateway.db", count):
            pass
    with http_gateway(folder / "few") as (small, _), http_gateway(folder / "many") as (large, _):
        visitors = [_signed_in(small), _signed_in(large)]
        try:
            return [_compared(f"console, {name}, {many:,} tasks", visitors, path) for name, path in PAGES.items()]
        finally:
            for visitor in visitors:
                visitor.close()


def _signed_in(port: int) -> httpx.Client:
    visitor = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False)
    visitor.post("/console/sign-in", data={"token": TOKEN})
    return visitor


def _compared(name: str, visitors: list[httpx.Client], path: str) -> Result:
    took: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for times, visitor in zip(took, visitors, strict=True):
            begun = time.perf_counter()
            visitor.get(path).raise_for_status()
            times.append((time.perf_counter() - begun) * 1_000)
    small, large = median(took[0]), median(took[1])
    return Result(name, f"{small:.1f} ms", f"{large:.1f} ms", large / small, GOAL, False, "times")


CONSOLE_SCENARIOS: Final[dict[str, Callable[[Size, Path], list[Result]]]] = {"console": pages}
