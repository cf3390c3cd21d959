"""One account more than a token may name, over every transport and by every call that names one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from gateway import targets
from gateway.domain.refusals import Reason
from tests.contract.transports import TRANSPORTS, Clients, RefusedError, clients
from tests.gateway.api.test_batches import batch, filed, order
from tests.gateway.support.grpc_api import RefusedCallError, heartbeat_of
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.rest_api import envelope_of, rest_client

LIMIT = 2
SAID = "account: anonymous has named 2 accounts, and 2 is the limit for one token"


@pytest.fixture
async def gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RunningGateway]:
    """A gateway at which all accounts but one have been named."""
    monkeypatch.setattr(targets, "MAX_OF_A_TOKEN", LIMIT)
    async with running_gateway(tmp_path, catalog_interval_seconds=3600, max_waiters=10) as running:
        await running.api.submit("po-a", site="sandbox", account="a")
        yield running


@pytest.fixture
async def every(gateway: RunningGateway) -> AsyncIterator[Clients]:
    async with clients(gateway.port, gateway.http_port) as made:
        yield made


async def submit(every: Clients, transport: str, account: str) -> None:
    await every.file(transport, f"po-{account}", account=account)


async def submit_query(every: Clients, transport: str, account: str) -> None:
    if transport == "rest":
        body = f'{{"site": "sandbox", "kind": "order_list", "account": "{account}"}}'
        await every.rest("POST", "/api/account/queries", body)
    else:
        await getattr(every, transport)("AccountQueryService/SubmitQuery", site="sandbox", kind=1, account=account)


async def discover(every: Clients, transport: str, account: str) -> None:
    if transport == "rest":
        body = f'{{"site": "sandbox", "account": "{account}"}}'
        await every.rest("POST", "/api/account/orders/discovery", body)
    else:
        await getattr(every, transport)("CatalogService/Discover", site="sandbox", account=account)


@pytest.mark.parametrize("call", [submit, submit_query, discover])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_account_too_many_is_refused_and_nothing_is_stored(
    gateway: RunningGateway, every: Clients, transport: str, call: Callable[[Clients, str, str], Awaitable[None]]
) -> None:
    await call(every, transport, "b")
    before = gateway.dump()
    with pytest.raises(RefusedError) as refused:
        await call(every, transport, "c")
    assert refused.value.status == (429 if transport == "rest" else "RESOURCE_EXHAUSTED")
    assert SAID in refused.value.message
    after = gateway.dump()
    assert {table: after[table] for table in ("tasks", "account_queries", "events", "catalog_targets")} == {
        table: before[table] for table in ("tasks", "account_queries", "events", "catalog_targets")
    }
    await call(every, transport, "a")


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_of_a_batch_only_the_order_that_names_one_too_many_is_refused(
    gateway: RunningGateway, every: Clients, transport: str
) -> None:
    orders = [order(number, account="ab"[number % 2]) for number in range(100)]
    orders[41]["account"] = "c"
    results = await batch(every, transport, orders)
    refused = results.pop(41)
    assert refused["field"] == "orders[41].account"
    assert refused["says"].startswith(SAID.removeprefix("account: "))
    assert results == [filed(number) for number in range(100) if number != 41]
    assert len(gateway.rows("SELECT 1 FROM tasks")) == 100


async def test_a_worker_that_serves_one_too_many_is_refused_and_one_that_waits_goes_on(gateway: RunningGateway) -> None:
    waiting = gateway.api.stream("w1", wait=60, sites=("sandbox",), accounts=("b",))
    await heartbeat_of(waiting)
    with pytest.raises(RefusedCallError) as refused:
        await gateway.api.lease("w2", sites=("sandbox",), accounts=("a", "c"))
    assert (refused.value.status, refused.value.reason) == ("RESOURCE_EXHAUSTED", Reason.TOO_MANY)
    async with rest_client(gateway.http_port) as client:
        asked = {"worker_id": "w2", "site": "sandbox", "account": "c", "wait": 30}
        answer = await client.get("/api/orders/lease", params=asked)
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
        assert SAID in envelope_of(answer)["msg"]
        health = (await client.get("/health")).json()["data"]
    assert [worker["worker_id"] for worker in health["workers"]] == ["w1"]
    await gateway.api.submit("po-b", site="sandbox", account="b")
    lease: Any = await asyncio.wait_for(waiting.read(), 30)
    assert lease.lease.task_id == "po-b"


async def test_what_was_named_counts_after_a_restart_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "MAX_OF_A_TOKEN", LIMIT)
    async with running_gateway(tmp_path) as first:
        for account in ("a", "b"):
            await first.api.submit(f"po-{account}", site="sandbox", account=account)
    async with running_gateway(tmp_path) as second:
        with pytest.raises(RefusedCallError, match="2 is the limit for one token"):
            await second.api.submit("po-c", site="sandbox", account="c")
        assert (await second.api.submit("po-d", site="sandbox", account="b")).created
