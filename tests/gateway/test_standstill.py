"""A gateway whose database cannot grow says so wherever its health is asked for, and is well again with room."""

import asyncio
import json
import resource
from pathlib import Path
from typing import Any

import httpx
import pytest
from ordergateway.v1 import operations_pb2

from gateway.domain.health import ProblemKind
from gateway.sweeps.sweep import Sweep
from tests.gateway.cli.command import Commands
from tests.gateway.support import databases
from tests.gateway.support.grpc_api import RefusedCallError, connected
from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.manual_time import ManualTime
from tests.gateway.support.process import gateway_process

SMALL = 131_072
"""Less than the write-ahead log has after the first order, more than the program's own log, which is a file too."""
UNLIMITED = resource.RLIM_INFINITY
RULES = Path(__file__).parents[2] / "deploy/prometheus-rules.yml"


async def eventually_health(client: httpx.AsyncClient, status: str) -> Any:
    """The health once its status is this; the last try to write may be a second old."""
    while True:
        told = (await client.get("/health")).json()["data"]
        if told["status"] == status:
            return told


@pytest.mark.sqlite
async def test_a_database_that_cannot_grow_is_told_everywhere(tmp_path: Path) -> None:
    # The limit holds for the log too, which therefore says little and seldom.
    async with (
        gateway_process(tmp_path, sweep_interval_seconds="1", log_level="WARNING") as gateway,
        connected(gateway.port) as api,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.http_port}", trust_env=False, timeout=60) as client,
    ):
        await api.submit("po-1", json.dumps({"pad": "x" * 200_000}))
        assert (await client.get("/health")).json()["data"]["status"] == "ok"
        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (SMALL, UNLIMITED))

        told = await eventually_health(client, "degraded")
        assert [problem["kind"] for problem in told["problems"]] == ["store_not_writable"]
        assert "takes no writes" in told["problems"][0]["message"]
        assert (await client.get("/readyz")).status_code == 503
        with pytest.raises(RefusedCallError):
            await api.submit("po-2")
        health = await api.health()
        assert health.status == operations_pb2.HEALTH_STATUS_DEGRADED
        assert [problem.kind for problem in health.problems] == [operations_pb2.HEALTH_PROBLEM_KIND_STORE_NOT_WRITABLE]
        assert 'ordergateway_problem{kind="store_not_writable"} 1.0' in (await client.get("/metrics")).text
        commands = Commands({"RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{gateway.port}"})
        shown = (await commands.ok("health")).out
        assert "degraded" in shown
        assert "takes no writes" in shown

        resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (UNLIMITED, UNLIMITED))
        await eventually_health(client, "ok")
        assert (await api.submit("po-2")).created
        assert await gateway.terminate() == 0
        assert "problem=store_not_writable the database takes no writes" in gateway.log


async def test_every_sweep_is_plugged_in(tmp_path: Path, time: ManualTime, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has tests of its own, which would not notice that nobody runs it."""
    names: list[str] = []

    async def note(sweep: Sweep) -> None:
        names.append(sweep.name)

    monkeypatch.setattr("gateway.composition.run_sweep", note)
    settings = {"alert_webhook_url": "http://127.0.0.1:9/", "retention_days": 1}
    async with running_gateway(tmp_path, time, **settings) as gateway:
        await gateway.api.submit()
    of_several = ["gateways"] if databases.is_postgres() else []
    assert sorted(names) == [
        "alert-webhook",
        "alerts",
        "callbacks",
        "catalog",
        "expire",
        *of_several,
        "health",
        "presence",
        "queries",
        "query_wake",
        "release",
        "retention",
        "unused_targets",
        "wake",
    ]


async def test_the_gateway_looks_for_what_its_settings_ask_for(tmp_path: Path, time: ManualTime) -> None:
    """Each kind of problem has tests of its own, which would not notice that nobody asks for it."""
    settings = {"alert_webhook_url": "http://127.0.0.1:9/", "backup_alert_seconds": 86_400}
    wanted = {
        operations_pb2.HEALTH_PROBLEM_KIND_ALERT_WEBHOOK_FAILING,
    }
    if not databases.is_postgres():
        # A server's database is backed up by its own means, of which the gateway knows nothing.
        wanted.add(operations_pb2.HEALTH_PROBLEM_KIND_BACKUP_TOO_OLD)
    async with running_gateway(tmp_path, time, **settings, sweep_interval_seconds=0.02) as gateway:
        await gateway.api.submit()
        async with asyncio.timeout(60):
            while wanted - {problem.kind for problem in (await gateway.api.health()).problems}:
                time.advance(3_600)
                await asyncio.sleep(0.02)


@pytest.mark.sqlite
async def test_a_backup_is_put_on_record_with_who_made_it(tmp_path: Path, time: ManualTime) -> None:
    async with running_gateway(tmp_path, time, token="secret", api_token=("night=secret-of-the-timer",)) as gateway:
        async with gateway.client("secret-of-the-timer") as api:
            made = await api.backup()
        (event,) = gateway.rows("SELECT * FROM events WHERE kind = 'backup'")
    assert event["actor"] == "night"
    assert made.file_name in event["details_json"]


ON_ANY_GATEWAY = "max without (instance) ({})"

RULED_BY_OTHER_FIGURES = {
    ProblemKind.WORKER_OFFLINE: ON_ANY_GATEWAY.format("ordergateway_worker_silent_seconds"),
    ProblemKind.TASK_UNCLAIMED: ON_ANY_GATEWAY.format("ordergateway_queue_oldest_seconds"),
    ProblemKind.DECISION_WAITING: 'sum(max by (status) (ordergateway_tasks{status=~"stale|needs_human"}))',
}


@pytest.mark.parametrize("kind", ProblemKind)
def test_every_kind_of_problem_has_a_rule(kind: ProblemKind) -> None:
    stands = ON_ANY_GATEWAY.format(f'ordergateway_problem{{kind="{kind.value}"}}') + " == 1"
    assert f"expr: {RULED_BY_OTHER_FIGURES.get(kind, stands)}" in RULES.read_text()
