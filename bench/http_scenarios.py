"""The benchmarks of the HTTP port: submissions over REST and Connect beside their frameworks, and idle long polls."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import httpx
import psutil

from bench.cpu import share_of_a_core
from bench.load import TOKEN
from bench.processes import REPOSITORY, measured
from bench.result import Result, compared, rate
from bench.scenarios import Size
from demo.programs import Program, entry_point, free_port, started


def serves_http(port: int) -> bool:
    """True if the HTTP port answers."""
    try:
        return httpx.get(f"http://127.0.0.1:{port}/livez", timeout=1, trust_env=False).is_success
    except httpx.HTTPError:
        return False


@contextmanager
def http_floor(folder: Path) -> Iterator[int]:
    """The running floor; gives its port."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    command = [sys.executable, "-m", "bench.http_floor", str(port)]
    with started("http-floor", command, {"PYTHONPATH": str(REPOSITORY)}, folder=folder) as program:
        program.wait_until(lambda: serves_http(port))
        yield port


@contextmanager
def http_gateway(folder: Path) -> Iterator[tuple[int, Program]]:
    """A running gateway; gives its HTTP port."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    settings = {
        "RAKUTEN_GATEWAY_PORT": str(port),
        "RAKUTEN_GATEWAY_GRPC_PORT": "0",
        "RAKUTEN_GATEWAY_DB_PATH": "gateway.db",
        "RAKUTEN_SITES": "sandbox",
        "RAKUTEN_API_TOKEN": TOKEN,
    }
    with started("gateway", [entry_point("order-gateway"), "serve"], settings, folder=folder) as program:
        program.wait_until(lambda: serves_http(port), seconds=60)
        yield port, program


def http_submits(size: Size, folder: Path) -> list[Result]:
    """Durable submissions of 32 callers over REST and over Connect."""
    results = []
    with http_floor(folder) as floor_port, http_gateway(folder) as (gateway_port, _program):
        for kind, name in (("rest", "REST"), ("connect", "Connect")):
            pairs = [
                [measured("http_load", kind, port, size.seconds)["per_second"] for port in (floor_port, gateway_port)]
                for _ in range(size.rounds)
            ]
            floors, ours = ([pair[each] for pair in pairs] for each in (0, 1))
            what = f"durable submits over {name}, 32 callers"
            results.append(compared(what, floors, ours, 0.65, at_least=True, shown=rate))
    return results


def long_polls(size: Size, folder: Path) -> list[Result]:
    """What idle long polls cost the gateway: share of one core, and memory."""
    with http_gateway(folder) as (port, program):
        server = psutil.Process(program.process.pid)
        command = [sys.executable, "-m", "bench.http_load", "idle", str(port), str(size.waiters)]
        with started("long-polls", command, {"PYTHONPATH": str(REPOSITORY)}, folder=folder) as clients:
            clients.wait_until(lambda: _connections(server, port) >= size.waiters)
            time.sleep(2)  # the last ones are being opened
            used = share_of_a_core(server, 2 * size.seconds + 4)
            clients.check()
            memory = server.memory_info().rss / 2**20
    name = f"{size.waiters:,} idle long polls"
    return [
        Result(f"{name}, share of a core", "", f"{used:.1f} %", used, 5, at_least=False, unit="%"),
        Result(f"{name}, memory", "", f"{memory:.0f} MiB", memory, 150, at_least=False, unit="MiB"),
    ]


def _connections(server: psutil.Process, port: int) -> int:
    ends = server.net_connections("tcp")
    return sum(end.status == psutil.CONN_ESTABLISHED and end.laddr.port == port for end in ends)


HTTP_SCENARIOS: Final[dict[str, Callable[[Size, Path], list[Result]]]] = {
    "http": http_submits,
    "polls": long_polls,
}
