"""No answer that the contract does not allow reaches the worker's loop: each is one line that names call and field."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from ordergateway.v1 import errors_pb2
from ordergateway.v1 import order_leases_pb2 as pb

from tests.hostile.gateway.lies import FAR, OF_CALLS, OF_LEASES, OF_QUERIES, Lie
from tests.hostile.gateway.server import HostileGateway, serving
from tests.worker.conftest import make_settings
from tests.worker.scripted_gateway import Refusal
from worker.account_queries.client import QueryClient
from worker.account_queries.port import Outcome
from worker.gateway.bounds import RETRY_AFTER
from worker.gateway.client import GatewayClient, open_channel
from worker.gateway.port import InvalidAnswer, Refused

TOKEN = "po-1-1".ljust(43, "x")
SITES = ("sandbox",)


class Clients:
    """The worker's two clients of one gateway, and each call of theirs."""

    def __init__(self, gateway: HostileGateway, channel: grpc.aio.Channel) -> None:
        self.gateway = gateway
        self.orders = GatewayClient(channel, worker_id="w", session_id="s" * 16, journal_id="j" * 16, token=None)
        self.queries = QueryClient(channel, worker_id="w", session_id="s" * 16, token=None)

    def call(self, method: str) -> Awaitable[Any]:
        calls: dict[str, Callable[[], Awaitable[Any]]] = {
            "LeaseOrders": lambda: self.orders.lease(SITES, 5),
            "RenewLease": lambda: self.orders.renew("po-1", TOKEN, seconds=5),
            "RequestSubmitPermit": lambda: self.orders.request_permit(
                "po-1", TOKEN, attests_no_click_record=True, verification=None, terms=None
            ),
            "ReportOrder": lambda: self.orders.report(pb.ReportOrderRequest(task_id="po-1")),
            "ReclaimOrder": lambda: self.orders.reclaim("po-1", ["sandbox"], requested_by="", reason=""),
            "LeaseQueries": lambda: self.queries.lease(SITES, 5, held=()),
            "ReportQueryResult": lambda: self.queries.report("q-1", 1, Outcome("{}")),
        }
        return calls[method]()


@pytest.fixture
async def clients(tmp_path: Path) -> Any:
    gateway = HostileGateway()
    gateway.orders.offer("po-1", "{}")
    gateway.orders.reclaimable["po-1"] = gateway.orders.lease("po-1", "{}", lease_count=2)
    gateway.queries.offer()
    async with AsyncExitStack() as stack:
        target = await stack.enter_async_context(serving(gateway))
        settings = make_settings(tmp_path, order_gateway_url=f"grpc://{target}")
        yield Clients(gateway, await stack.enter_async_context(open_channel(settings)))


@pytest.mark.parametrize("method", sorted({lie.method for lie in (*OF_LEASES, *OF_CALLS, *OF_QUERIES)}))
async def test_an_honest_answer_is_taken(clients: Clients, method: str) -> None:
    await clients.call(method)


@pytest.mark.parametrize("lie", [*OF_LEASES, *OF_CALLS, *OF_QUERIES], ids=str)
async def test_a_lie_is_no_answer(clients: Clients, lie: Lie) -> None:
    clients.gateway.bends[lie.method] = lie.bend
    with pytest.raises(InvalidAnswer, match=lie.said) as told:
        await clients.call(lie.method)
    words = str(told.value)
    assert words.startswith(f"the gateway's answer to {lie.method} cannot be used: ")
    assert words.isprintable()
    assert len(words) < 250
    assert TOKEN not in words


@pytest.mark.parametrize(("told", "taken"), [(-FAR, 1), (-1, 1), (0, 1), (1e-9, 1), (7.5, 7.5), (FAR, 3600)])
async def test_a_delay_is_taken_within_bounds(clients: Clients, told: float, taken: float) -> None:
    paused = Refusal(grpc.StatusCode.ABORTED, errors_pb2.ERROR_REASON_DISPATCH_PAUSED, retry_after=told)
    clients.gateway.orders.script["RequestSubmitPermit"] = [paused]
    with pytest.raises(Refused) as refusal:
        await clients.call("RequestSubmitPermit")
    assert refusal.value.retry_after == taken
    assert RETRY_AFTER.least <= taken <= RETRY_AFTER.most
