"""The figures at /metrics: what they count, who may see them, that the dashboard and the alert rules name real ones."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from gateway.api.codec.terms import terms_message
from gateway.domain.states import OrderState
from gateway.metrics import MAX_TARGETS, Metrics
from tests.gateway.callbacks.receiver import Receiver, receiving
from tests.gateway.support.book import terms
from tests.gateway.support.budgets import remove_budget, set_budget
from tests.gateway.support.grpc_api import RefusedCallError, heartbeat_of
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime
from worker.telemetry.metrics import WorkerMetrics

DEPLOY = Path(__file__).parents[2] / "deploy"


async def scraped(gateway: RunningGateway, token: str | None = None) -> dict[tuple[str, ...], float]:
    """Every sample by its name and label values."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{gateway.http_port}", trust_env=False, timeout=60
    ) as client:
        answer = await client.get("/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


@pytest.fixture(autouse=True)
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.metrics.FRESH_SECONDS", 0)


async def test_how_things_stand_and_what_has_happened(gateway: RunningGateway) -> None:
    api = gateway.api
    before = await scraped(gateway)
    assert before["ordergateway_tasks", "queued"] == 0
    await api.submit("po-1")
    await api.submit("po-2")
    lease = await api.take("po-1")
    await api.permit(lease)
    with pytest.raises(RefusedCallError):
        await api.permit(lease, journal_id="journal-of-another-one")
    gateway.time.advance(20)
    waiting = api.stream("w2", 30)
    await heartbeat_of(waiting)
    figures = await scraped(gateway)
    while ("ordergateway_worker_silent_seconds", "w2") not in figures:
        # The heartbeat says that the stream is open; the worker is written down by the lease attempt after it.
        figures = await scraped(gateway)
    waiting.cancel()
    assert figures["ordergateway_tasks", "queued"] == 1
    assert figures["ordergateway_tasks", "leased"] == 1
    assert figures["ordergateway_queue_oldest_seconds",] == 20
    assert figures["ordergateway_target_oldest_seconds", "", "rakuten"] == 20
    assert figures["ordergateway_targets", "queued"] == figures["ordergateway_targets", "active"] == 1
    assert figures["ordergateway_worker_silent_seconds", "w1"] == 20
    assert figures["ordergateway_worker_silent_seconds", "w2"] == 0
    assert figures["ordergateway_events_total", "submit"] == 2
    assert figures["ordergateway_events_total", "lease"] == 1
    assert figures["ordergateway_events_total", "permit"] == 1
    assert figures["ordergateway_refusals_total", "permit_refused", "permit_other_journal"] == 1
    assert figures["ordergateway_waiting",] == 1
    assert figures["ordergateway_store_commit_seconds_count",] > 3
    assert figures["ordergateway_store_group_operations_sum",] >= figures["ordergateway_store_group_operations_count",]
    assert figures["process_resident_memory_bytes",] > 0

    gateway.time.advance(400)
    with pytest.raises(RefusedCallError):
        await api.report(lease, OrderState.ORDERED)
    figures = await scraped(gateway)
    assert figures["ordergateway_tasks", "stale"] == 1
    assert figures["ordergateway_events_total", "expire"] == 1
    assert figures["ordergateway_refusals_total", "report_refused", "lease_invalid"] == 1
    assert figures["ordergateway_alerts_standing", "late_report"] == 1
    assert figures["ordergateway_alerts_standing", "task_stale"] == 1
    gateway.pause("rakuten")
    assert (await scraped(gateway))["ordergateway_pauses",] == 1


async def test_budgets_show_what_is_reserved_settled_and_left(gateway: RunningGateway) -> None:
    api = gateway.api
    await set_budget(api, "house", 5_000)
    lease = await api.take()
    await api.permit(lease, terms=terms_message(terms(3_000)))
    figures = await scraped(gateway)
    yen = {what: figures["ordergateway_budget_yen", "house", what] for what in ("limit", "reserved", "settled", "left")}
    assert yen == {"limit": 5_000, "reserved": 3_000, "settled": 0, "left": 2_000}
    await api.report(lease, OrderState.PAID, payable_yen=2_900, sequence=1)
    figures = await scraped(gateway)
    assert figures["ordergateway_budget_yen", "house", "settled"] == 2_900
    await remove_budget(api, "house")
    assert ("ordergateway_budget_yen", "house", "left") not in await scraped(gateway)


async def test_a_page_has_the_targets_that_wait_longest_and_no_more(gateway: RunningGateway) -> None:
    for number in range(MAX_TARGETS + 5):
        await gateway.api.submit(f"po-{number}", account=f"a{number}")
    shown = {key[1] for key in await scraped(gateway) if key[0] == "ordergateway_target_oldest_seconds"}
    assert shown == {f"a{number}" for number in range(MAX_TARGETS)}
    await gateway.api.cancel("po-0")
    figures = await scraped(gateway)
    assert ("ordergateway_target_oldest_seconds", "a0", "rakuten") not in figures
    assert ("ordergateway_target_oldest_seconds", f"a{MAX_TARGETS}", "rakuten") in figures
    assert figures["ordergateway_targets", "known"] == MAX_TARGETS + 5


async def test_callbacks_are_counted(gateway: RunningGateway) -> None:
    async with receiving(Receiver()) as receiver:
        await gateway.api.submit(callback_url=receiver.url)
        await gateway.api.cancel()
        await receiver.comes(1)
        figures = await scraped(gateway)
        # It is counted after it was written down, and that is after the receiver has got it.
        while not figures.get(("ordergateway_callback_tries_total", "delivered")):
            figures = await scraped(gateway)
    assert figures["ordergateway_callback_tries_total", "delivered"] == 1
    assert figures["ordergateway_callbacks", "delivered"] == 1


async def test_counters_begin_with_the_process(tmp_path: Path, time: ManualTime) -> None:
    async with running_gateway(tmp_path, time) as first:
        await first.api.submit()
    async with running_gateway(tmp_path, time) as second:
        figures = await scraped(second)
        assert ("ordergateway_events_total", "submit") not in figures
        assert figures["ordergateway_tasks", "queued"] == 1


@pytest.fixture
async def guarded(tmp_path: Path, time: ManualTime) -> AsyncIterator[RunningGateway]:
    tokens = {"worker_token": "worker-token", "operator_token": "operator-token", "upstream_token": "upstream-token"}
    async with running_gateway(tmp_path, time, **tokens) as running:
        yield running


@pytest.mark.parametrize(
    ("token", "status"), [(None, 401), ("worker-token", 403), ("operator-token", 200), ("upstream-token", 200)]
)
async def test_a_token_is_asked_for(guarded: RunningGateway, token: str | None, status: int) -> None:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:
        answer = await client.get(f"http://127.0.0.1:{guarded.http_port}/metrics", headers=headers)
    assert answer.status_code == status


def names_of(registry: CollectorRegistry) -> set[str]:
    """Every name that a registry can show."""
    names = set()
    for family in registry.collect():
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"], "info": ["_info"]}
        names |= {family.name + suffix for suffix in suffixes.get(family.type, [""])}
    return names


@pytest.mark.parametrize("file", ["grafana-dashboard.json", "prometheus-rules.yml"])
def test_dashboard_and_rules_name_figures_that_exist(file: str) -> None:
    text = (DEPLOY / file).read_text()
    known = names_of(Metrics().registry) | names_of(WorkerMetrics().registry)
    named = set(re.findall(r"\b(?:ordergateway|orderworker|process)_[a-z_]+\b", text))
    assert len(named) > 8
    assert named <= known, named - known


def test_what_is_wrong_is_told_once_however_many_gateways_show_it() -> None:
    """Each figure of the gateway is brought together over the gateways before it is judged."""
    rules = re.findall(r"^ +expr: (.*ordergateway_.*)$", (DEPLOY / "prometheus-rules.yml").read_text(), re.MULTILINE)
    over_all = r"(?:absent|(?:max|sum) (?:without \(instance\)|by \([a-z_, ]*\))) ?\((?:[^()]|\([^()]*\))*\)"
    assert len(rules) > 10
    assert [rule for rule in rules if "ordergateway_" in re.sub(over_all, "", rule)] == []
    assert "instance" not in "".join(re.findall(r"by \([^)]*\)", "".join(rules)))


def test_the_dashboard_is_json_with_a_title_on_every_panel() -> None:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    assert all(panel["title"] and panel["targets"] for panel in dashboard["panels"])
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
