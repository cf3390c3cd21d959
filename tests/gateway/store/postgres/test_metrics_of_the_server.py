"""What a gateway's metrics tell of its PostgreSQL server."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.gateway.store.postgres.conftest import end_sessions
from tests.gateway.support.in_process import RunningGateway, running_gateway

pytestmark = pytest.mark.needs("postgresql")

OLDEST = "ordergateway_database_oldest_transaction_seconds"
LOST = "ordergateway_database_reconnects_total"


@pytest.fixture
async def gateway(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningGateway]:
    monkeypatch.setattr("gateway.metrics.FRESH_SECONDS", 0)
    async with running_gateway(tmp_path, gateway_db_url=url) as running:
        yield running


async def figures(gateway: RunningGateway) -> dict[tuple[str, ...], float]:
    """Every sample by its name and label values."""
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{gateway.http_port}", trust_env=False, timeout=60
    ) as client:
        text = (await client.get("/metrics")).text
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_how_long_a_transaction_has_held_back_vacuum(gateway: RunningGateway, url: str) -> None:
    begun = time.monotonic()
    with psycopg.connect(url) as idle, psycopg.connect(url) as reader:
        idle.execute("BEGIN")  # it has seen nothing, so it holds nothing back
        while time.monotonic() < begun + 0.2:
            assert (await figures(gateway))[OLDEST,] < time.monotonic() - begun
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM tasks")
        opened = time.monotonic()
        while (await figures(gateway))[OLDEST,] < 0.2:
            assert time.monotonic() < opened + 60
        told = (await figures(gateway))[OLDEST,]
        assert told <= time.monotonic() - begun
        reader.rollback()
        while (await figures(gateway))[OLDEST,] >= told:
            assert time.monotonic() < opened + 60


async def test_connections_that_were_lost_are_counted_by_what_they_were_for(gateway: RunningGateway, url: str) -> None:
    before = await figures(gateway)
    assert [before[LOST, purpose] for purpose in ("writer", "reader", "listener")] == [0, 0, 0]
    for purpose in ("writer", "reader", "listener"):
        ended = end_sessions(url, purpose)
        assert ended >= 1
        while (found := (await figures(gateway))[LOST, purpose]) < ended:
            await gateway.api.submit("po-1")
        assert found == ended
