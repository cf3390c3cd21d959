"""A body that was refused, and what comes after it on the same connection."""

import asyncio
import json

import httpx
import pytest

from gateway.api.http import protocol
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.rest_api import data_of, exchange
from tests.hostile.http.test_framing import TYPE, answers_in, request

LINGER = 1.0
"""Seconds; the whole body has to come within them, also on a busy machine."""

LARGE = b" " * (5 * 2**20)
REFUSED = {
    "/api/orders": 413,
    "/ordergateway.v1.OrderService/SubmitOrder": 429,
    "/api/nothing": 404,
}


@pytest.fixture(autouse=True)
def _short_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "LINGER_SECONDS", LINGER)


@pytest.mark.parametrize("path", REFUSED)
async def test_once_it_has_come_the_connection_lives_on(gateway: RunningGateway, path: str) -> None:
    """A proxy hands the connection to somebody else next, whose long call must not be cut off."""
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{gateway.http_port}", trust_env=False, timeout=60
    ) as client:
        refused = await client.post(path, content=LARGE, headers={"Content-Type": "application/json"})
        assert refused.status_code == REFUSED[path]
        waited = await client.get("/api/orders/lease", params={"worker_id": "w1", "wait": 1.5 * LINGER})
        assert data_of(waited) is None
        ends = [each.extensions["network_stream"].get_extra_info("client_addr") for each in (refused, waited)]
    assert ends[0] == ends[1], "the same connection"


@pytest.mark.parametrize("path", REFUSED)
async def test_who_asks_for_the_end_reads_the_refusal_too(gateway: RunningGateway, path: str) -> None:
    """As nginx does by default. A connection that is closed on unread bytes is reset, and the answer with it."""
    body_length = f"Content-Length: {len(LARGE)}"
    answer = await exchange(
        gateway.http_port, request(f"POST {path}", TYPE, "Connection: close", body_length, body=LARGE)
    )
    assert answers_in(answer) == [REFUSED[path]]
    told = answer.partition(b"\r\n\r\n")[2]
    json.loads(told[told.index(b"{") : told.rindex(b"}") + 1])  # it may come in chunks


@pytest.mark.parametrize("path", REFUSED)
async def test_one_that_never_comes_ends_the_connection(gateway: RunningGateway, path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port)
    writer.write(request(f"POST {path}", TYPE, f"Content-Length: {len(LARGE)}", body=LARGE[:-1]))
    try:
        async with asyncio.timeout(60):
            told = await reader.read()
    except ConnectionResetError:
        told = b""
    assert told.count(b"HTTP/1.1 ") <= 1
    writer.close()
