"""The gateway on either engine, and a fleet of waiting workers: each is measured, as it says."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest
from ordergateway.v1 import order_leases_pb2_grpc, orders_pb2_grpc

from bench import __main__ as program
from bench import fleet_scenarios, postgres
from bench.cpu import cpu_seconds
from bench.engine_scenarios import engines
from bench.fleet_load import Worker
from bench.installation import Installation, in_turn
from bench.load import OWN_CONNECTION, Client
from bench.processes import gateway
from bench.result import Result, Skipped
from bench.scenarios import QUICK

SMALL = replace(QUICK, rounds=1, seconds=1, leases=4, fleet=40)


@pytest.fixture
def no_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(postgres, "BESIDE_THE_PATH", ())


@pytest.mark.usefixtures("no_server")
@pytest.mark.parametrize("scenario", [engines, fleet_scenarios.on_postgresql])
def test_without_a_server_a_scenario_is_skipped(scenario: Callable[..., object], tmp_path: Path) -> None:
    with pytest.raises(Skipped, match="there is no initdb on this machine"):
        scenario(SMALL, tmp_path)


@pytest.mark.usefixtures("no_server")
def test_what_is_skipped_is_told_in_one_line_and_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", "engines"])
    monkeypatch.setattr(program, "end_on_signals", lambda: None)
    assert program.main() == 0
    told = capsys.readouterr()
    assert told.out == ""
    lines = [line for line in told.err.splitlines() if line.startswith("bench: engines")]
    assert lines == ["bench: engines is skipped: there is no initdb on this machine"]


def test_loads_take_turns_and_processor_time_is_told_by_the_order() -> None:
    turns = []

    def load_of(name: str) -> Callable[[str, float], Mapping[str, Any]]:
        def run(kind: str, amount: float) -> Mapping[str, Any]:
            turns.append((name, kind, amount))
            subprocess.run([sys.executable, "-c", BURN], check=True)
            return {"per_second": 5.0, "done": 10, "ms": [1.0], "cpu_ms": 2.0}

        return run

    process = psutil.Process()
    said = in_turn(2, "cycle", 0.5, {name: Installation(load_of(name), (process,), None) for name in ("a", "b")})
    assert turns == [("a", "cycle", 0.5), ("b", "cycle", 0.5)] * 2
    assert said["a"].per_second == [5.0, 5.0]
    assert said["a"].milliseconds == [1.0, 1.0]
    assert said["a"].client_ms == [2.0, 2.0]
    assert said["a"].server_ms == [0.0, 0.0]
    assert min(said["a"].gateways_ms) >= BURNT_SECONDS / 10 * 1000


BURNT_SECONDS = 0.2
BURN = f"import time\nwhile time.process_time() < {BURNT_SECONDS} + 0.05: pass"  # the system counts in ticks of 10 ms


def test_processor_time_counts_processes_below_while_they_run_and_after() -> None:
    here = psutil.Process()
    before = cpu_seconds(here)
    burning = f"{BURN}\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", burning], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert cpu_seconds(here) - before >= BURNT_SECONDS
        child.communicate(b"\n")
    assert cpu_seconds(here) - before >= BURNT_SECONDS


def values(results: list[Result]) -> list[float]:
    assert len({result.name for result in results}) == len(results)
    return [result.value for result in results]


@pytest.mark.extended
@pytest.mark.timeout(600)
@pytest.mark.needs("postgresql")
def test_engines_are_measured_side_by_side(tmp_path: Path) -> None:
    results = engines(SMALL, tmp_path)
    assert all(value > 0 for value in values(results))
    rows = "\n".join(result.name for result in results)
    for way in ("one gateway", "two gateways", "one of two gateways", "across two gateways"):
        assert f"PostgreSQL, {way} (beside SQLite)" in rows
    assert (tmp_path / "sqlite" / "gateway.db").exists()
    assert not (tmp_path / "alone" / "gateway.db").exists()


@pytest.mark.extended
@pytest.mark.needs("postgresql")
def test_the_server_of_the_benchmarks_flushes_what_it_commits(tmp_path: Path) -> None:
    with postgres.server(tmp_path) as server, server.connect("postgres") as connection:
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            assert connection.execute(f"SHOW {name}").fetchone() == ("on",)
        folder = server.folder
    assert not folder.exists()


@pytest.mark.extended
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "scenario",
    [fleet_scenarios.on_sqlite, pytest.param(fleet_scenarios.on_postgresql, marks=pytest.mark.needs("postgresql"))],
)
def test_a_fleet_is_measured(scenario: Callable[..., list[Result]], tmp_path: Path) -> None:
    results = scenario(SMALL, tmp_path)
    moments = [result for result in results if "idle" not in result.name and "memory" not in result.name]
    assert all(value > 0 for value in values(moments))  # what forty who wait take may be less than is counted in
    assert all("40 workers wait, 80 targets" in result.name for result in results)


@pytest.mark.extended
async def test_an_order_that_was_not_just_submitted_ends_the_run(tmp_path: Path) -> None:
    with gateway(tmp_path, fleet_scenarios.SCOPE) as (target, _program):
        async with grpc.aio.insecure_channel(target, options=OWN_CONNECTION) as channel:
            client = Client(
                orders_pb2_grpc.OrderServiceStub(channel), order_leases_pb2_grpc.OrderLeaseServiceStub(channel),
                accounts=("a",),
            )  # fmt: skip
            await client.submit("a")
            worker = Worker(client)
            running = asyncio.create_task(worker.run(asyncio.Semaphore()))
            with pytest.raises(AssertionError, match="another order was leased"):
                await worker.order()
            running.cancel()
