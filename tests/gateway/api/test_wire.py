"""What docs/clients.md says of the two ports: protocols, compression, sizes and pings."""

import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import httpx
import pytest
from ordergateway.v1 import orders_pb2
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from gateway.api.grpc.server import _OPTIONS
from tests.gateway.support.in_process import RunningGateway

PAGE = (Path(__file__).parents[3] / "docs/clients.md").read_text()
ORDER = orders_pb2.SubmitOrderRequest(task_id="po-1", site="rakuten", intent_json='{"note": "煎茶"}')
SUBMIT = "/ordergateway.v1.OrderService/SubmitOrder"


@pytest.fixture
async def http(gateway: RunningGateway) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.http_port}", trust_env=False) as client:
        yield client


async def submitted(port: int, **call: object) -> orders_pb2.SubmitOrderResponse:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_retries", 0)]) as channel:
        answer: orders_pb2.SubmitOrderResponse = await OrderServiceStub(channel).SubmitOrder(ORDER, timeout=10, **call)  # type: ignore[arg-type,misc]
        return answer


def test_the_page_tells_the_times_of_pings_as_they_are_set() -> None:
    set_to = dict(_OPTIONS)
    said = re.search(
        r"pings every (\d+) s and gives up a connection after (\d+) s .* more often than every (\d+) s", PAGE, re.DOTALL
    )
    assert said
    names = ("keepalive_time_ms", "keepalive_timeout_ms", "http2.min_ping_interval_without_data_ms")
    assert [int(seconds) * 1_000 for seconds in said.groups()] == [set_to[f"grpc.{name}"] for name in names]


async def test_grpc_takes_gzip(gateway: RunningGateway) -> None:
    assert (await submitted(gateway.port, compression=grpc.Compression.Gzip)).created


@pytest.mark.parametrize(("encoding", "status"), [("gzip", 200), ("br", 501)])
async def test_connect_takes_gzip_and_no_brotli(http: httpx.AsyncClient, encoding: str, status: int) -> None:
    body = gzip.compress(ORDER.SerializeToString())
    headers = {"content-type": "application/proto", "content-encoding": encoding}
    assert (await http.post(SUBMIT, content=body, headers=headers)).status_code == status


async def test_rest_takes_no_compression(http: httpx.AsyncClient) -> None:
    body = gzip.compress(b'{"task_id": "po-1", "site": "rakuten", "intent": {}}')
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    assert (await http.post("/api/orders", content=body, headers=headers)).status_code in (400, 415)


async def test_metadata_beyond_16_kib_is_refused_without_a_detail(
    gateway: RunningGateway, http: httpx.AsyncClient
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await submitted(gateway.port, metadata=(("x-more", "x" * 32 * 1024),))
    assert "grpc-status-details-bin" not in dict(refused.value.trailing_metadata() or ())
    assert (await http.get("/api/orders", headers={"x-more": "x" * 32 * 1024})).status_code == 431
    assert (await submitted(gateway.port, metadata=(("x-more", "x" * 8 * 1024),))).created


async def test_the_wrong_port_is_no_answer_of_the_gateway(gateway: RunningGateway) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as wrong:
        await submitted(gateway.http_port)
    assert wrong.value.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL)
    assert "grpc-status-details-bin" not in dict(wrong.value.trailing_metadata() or ())
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway.port}", trust_env=False) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.get("/api/orders")
