"""docs/nginx.conf on a real nginx: every transport over one TLS port, streams that idle longer than its timeouts.

Everything is as documented but addresses, the certificate's place, and time: heartbeats and timeouts are ten times
shorter, in the same proportion.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import httpx
import pytest
from ordergateway.v1 import orders_pb2

from gateway.composition import build_gateway
from gateway.dispatch import watch
from tests.gateway.api.test_auth import certificates
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.nginx import nginx
from tests.gateway.support.rest_api import data_of, envelope_of, lease, post, rest_client, submit

__all__ = ["certificates"]

pytestmark = pytest.mark.needs("nginx", "openssl")

FASTER = 10
HEADERS = {"Authorization": "Bearer the-token"}


class Proxied:
    """Clients on the far side of nginx."""

    def __init__(self, gateway: RunningGateway, api: GrpcApi, http: httpx.AsyncClient) -> None:
        self.gateway, self.api, self.http = gateway, api, http


@pytest.fixture
async def proxied(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Proxied]:
    monkeypatch.setattr(watch.watch, "__kwdefaults__", {"heartbeat_seconds": 10 / FASTER})
    monkeypatch.setitem(build_gateway.__kwdefaults__, "heartbeat_seconds", 10 / FASTER)
    async with (
        running_gateway(certificates, token="the-token", api_token=("the-token",)) as gateway,
        nginx(certificates, [(gateway.http_port, gateway.port)], FASTER) as port,
    ):
        trust = (certificates / "ca.pem").read_bytes()
        context = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
        async with (
            grpc.aio.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(trust)) as channel,
            httpx.AsyncClient(
                base_url=f"https://localhost:{port}", verify=context, headers=HEADERS, timeout=30
            ) as http,
        ):
            yield Proxied(gateway, GrpcApi(channel, "the-token"), http)


async def test_every_transport_gets_through_with_its_errors(proxied: Proxied) -> None:
    await proxied.api.submit("po-1", '{"a":1.0}')
    assert '"intent":{"a":1.0}' in (await proxied.http.get("/api/orders/po-1")).text
    over_connect = await post(proxied.http, "/ordergateway.v1.OrderService/GetOrder", {"taskId": "po-1"})
    assert over_connect.json()["task"]["intentJson"] == '{"a":1.0}'
    with pytest.raises(RefusedCallError) as refused:
        await proxied.api.task("none")
    assert refused.value.status == "NOT_FOUND"
    assert envelope_of(await proxied.http.get("/api/orders/none"))["code"] == 6001
    too_large = await post(proxied.http, "/api/orders", b"x" * 5_000_000)
    assert (too_large.status_code, envelope_of(too_large)["code"]) == (413, 413)
    assert (await proxied.http.get("/health", headers={"Authorization": "Bearer no"})).status_code == 401


@pytest.mark.extended
async def test_streams_that_idle_longer_than_the_timeouts_go_on(proxied: Proxied) -> None:
    """Silence of the client for as long as one likes, of the gateway for less than a heartbeat."""
    await proxied.api.submit("po-1", site="sandbox")
    watching = proxied.api.watch("po-1")
    first = await watching.read()
    assert isinstance(first, orders_pb2.WatchOrderResponse)
    waiting = asyncio.create_task(proxied.api.lease("w1", wait=20, sites=("rakuten",)))

    async def over_connect() -> list[bytes]:
        headers = {"Content-Type": "application/connect+json"}
        body = b'\0\0\0\0\x11{"taskId":"po-1"}'
        async with proxied.http.stream(
            "POST", "/ordergateway.v1.OrderService/WatchOrder", content=body, headers=headers
        ) as answer:
            return [chunk async for chunk in answer.aiter_raw()]

    connect = asyncio.create_task(over_connect())
    heartbeats = 0
    async with asyncio.timeout(30):
        while heartbeats < 8:  # 8 s, where nginx gives up on 3 s of silence for gRPC and on 7.5 s for HTTP
            message = await watching.read()
            assert isinstance(message, orders_pb2.WatchOrderResponse)
            assert message.HasField("heartbeat")
            heartbeats += 1
    assert not waiting.done()
    assert not connect.done()
    await proxied.api.submit("po-2", site="rakuten")
    taken = await asyncio.wait_for(waiting, 60)
    assert taken is not None
    assert taken.task_id == "po-2"
    await proxied.api.cancel("po-1")
    assert b"TASK_STATUS_FAILED" in b"".join(await asyncio.wait_for(connect, 60))
    last = await watching.read()
    while isinstance(last, orders_pb2.WatchOrderResponse) and last.HasField("heartbeat"):
        last = await watching.read()
    assert isinstance(last, orders_pb2.WatchOrderResponse)
    assert last.task.status == orders_pb2.TASK_STATUS_FAILED


@pytest.mark.extended
async def test_a_long_poll_waits_behind_it_and_a_client_that_goes_away_is_noticed(proxied: Proxied) -> None:
    answer = await proxied.http.get("/api/orders/lease?worker_id=w1&wait=5")
    assert data_of(answer) is None
    polling = asyncio.create_task(proxied.http.get("/api/orders/lease?worker_id=gone&wait=30"))
    while not proxied.gateway.rows("SELECT 1 FROM workers WHERE worker_id = 'gone'"):  # noqa: ASYNC110 - it is the signal
        await asyncio.sleep(0.01)
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)
    async with asyncio.timeout(60), rest_client(proxied.gateway.http_port, "the-token") as direct:
        while "ordergateway_waiting 0.0" not in (await direct.get("/metrics")).text:  # nginx passes the news on
            pass
    await submit(proxied.http)
    assert (await lease(proxied.http, "next", wait=10))["task_id"] == "po-1"


async def test_its_log_holds_no_query_and_no_token(proxied: Proxied, certificates: Path) -> None:
    await submit(proxied.http)
    token = (await lease(proxied.http, note="the-token"))["lease_token"]
    await proxied.http.get(f"/api/orders/po-1?lease_token={token}")
    text = (certificates / "access.log").read_text()
    assert "GET /api/orders/lease 200" in text
    assert "the-token" not in text
    assert token not in text
