"""The account beside the site, the same on every transport; without one everything is as it was."""

from typing import Any

import pytest

from tests.contract.transports import TRANSPORTS, Clients, clients
from tests.gateway.support.grpc_api import duration
from tests.gateway.support.in_process import RunningGateway


@pytest.fixture
async def connected(gateway: RunningGateway) -> Any:
    async with clients(gateway.port, gateway.http_port) as made:
        yield made


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_task_has_its_account_for_ever(connected: Clients, transport: str) -> None:
    assert await connected.file(transport, "po-1", account="buyer-1") == []
    for other in TRANSPORTS:
        assert await connected.file(other, "po-1", account="buyer-1") == []
        assert await connected.file(other, "po-1", account="buyer-2") == ["account"]
        assert await connected.file(other, "po-1") == ["account"]
    assert (await connected.rest("GET", "/api/orders/po-1"))["account"] == "buyer-1"
    assert (await connected.grpc("OrderService/GetOrder", task_id="po-1")).task.account == "buyer-1"
    assert (await connected.connect("OrderService/GetOrder", task_id="po-1")).task.account == "buyer-1"


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_lists_are_narrowed_to_an_account(connected: Clients, transport: str) -> None:
    for number, account in enumerate(("", "a", "b", "a")):
        await connected.file("grpc", f"po-{number}", account=account)

    async def listed(**filters: str) -> list[str]:
        if transport == "rest":
            found = (await connected.rest("GET", "/api/orders", **filters))["items"]
            return [task["task_id"] for task in found]
        return [
            task.task_id for task in (await getattr(connected, transport)("OrderService/ListOrders", **filters)).tasks
        ]

    assert await listed() == ["po-3", "po-2", "po-1", "po-0"]
    assert await listed(account="a") == ["po-3", "po-1"]
    assert await listed(account="a", site="sandbox") == ["po-3", "po-1"]
    assert await listed(account="a", site="rakuten") == []
    assert await listed(account="nobody") == []


@pytest.mark.parametrize("transport", ["grpc", "rest"])
async def test_a_worker_gets_the_orders_of_its_own_accounts_alone(connected: Clients, transport: str) -> None:
    async def leased(worker: str, account: str | None) -> tuple[str, str] | None:
        if transport == "rest":
            wanted = {} if account is None else {"account": account}
            lease = await connected.rest("GET", "/api/orders/lease", worker_id=worker, wait=0, **wanted)
            return lease and (lease["task_id"], lease["account"])
        accounts = [] if account is None else ["z", account]
        session = f"session-of-{worker:0<8}"
        event = await getattr(connected, transport)(
            "OrderLeaseService/LeaseOrders",
            worker_id=worker, session_id=session, journal_id="journal-of-everybody", sites=["sandbox"],
            wait=duration(0), accounts=accounts,
        )  # fmt: skip
        return (event.lease.task_id, event.lease.account) if event.HasField("lease") else None

    await connected.file("grpc", "of-a", account="a")
    assert await leased("old", None) is None
    assert await leased("b", "b") is None
    assert await leased("a", "a") == ("of-a", "a")


@pytest.mark.parametrize("account", ["-a", "a b", "a" * 65, "a/b", "ä"])
@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_malformed_account_is_refused_and_nothing_is_stored(
    connected: Clients, transport: str, account: str
) -> None:
    with pytest.raises(Exception, match="account"):
        await connected.file(transport, "po-1", account=account)
    assert (await connected.rest("GET", "/api/orders"))["items"] == []


async def test_an_empty_account_in_a_list_s_address_is_refused(connected: Clients) -> None:
    assert (await connected.http.get("/api/orders?account=")).status_code == 422


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_query_has_its_account_and_goes_to_its_workers_alone(connected: Clients, transport: str) -> None:
    if transport == "rest":
        filed = {"query_id": "aq-1", "site": "sandbox", "kind": "order_list", "account": "a"}
        await connected.rest("POST", "/api/account/queries", filed)
        differs = (await connected.rest("POST", "/api/account/queries", filed | {"account": ""}))["differs"]
    else:
        call = getattr(connected, transport)
        filed = {"query_id": "aq-1", "site": "sandbox", "kind": 1, "account": "a"}
        await call("AccountQueryService/SubmitQuery", **filed)
        differs = list((await call("AccountQueryService/SubmitQuery", **(filed | {"account": "b"}))).differs)
    assert differs == ["account"]
    assert await connected.rest("GET", "/api/account/queries/lease", worker_id="w1", wait=0) is None
    lease = await connected.rest("GET", "/api/account/queries/lease", worker_id="w1", wait=0, account="a")
    assert (lease["query_id"], lease["account"]) == ("aq-1", "a")
    assert (await connected.rest("GET", "/api/account/queries/aq-1"))["account"] == "a"
