"""The worker's figures in a file."""

import asyncio
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.worker.conftest import Bench, eventually


def figures(path: Path) -> dict[tuple[str, ...], float]:
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(path.read_text())
        for sample in family.samples
    }


async def test_an_order_shows_in_the_file(bench: Bench) -> None:
    path = bench.folder / "worker.prom"
    bench.settings["metrics_textfile"] = path
    async with bench.worker():
        await eventually(path.exists)
        assert figures(path)["orderworker_orders", "succeeded"] == 0
        bench.gateway.offer("po-1", bench.intent())
        await bench.gateway.end_of("po-1")
    shown = figures(path)
    assert shown["orderworker_orders", "succeeded"] == 1
    assert shown["orderworker_orders", "open"] == 0
    assert shown["orderworker_clicked_orders",] == 1
    assert shown["orderworker_waiting_reports",] == 0
    assert shown["orderworker_disk_ok",] == 1
    assert shown["orderworker_written_timestamp_seconds",] > 1_700_000_000


async def test_a_file_that_cannot_be_written_stops_nothing(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.settings["metrics_textfile"] = bench.folder / "nowhere" / "worker.prom"
    async with bench.worker():
        bench.gateway.offer("po-1", bench.intent())
        async with asyncio.timeout(60):
            await bench.gateway.end_of("po-1")
    assert caplog.text.count("RAKUTEN_METRICS_TEXTFILE cannot be written") == 1
