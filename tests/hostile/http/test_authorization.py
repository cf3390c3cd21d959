"""More than one Authorization: two programs may each believe another one, so none is believed."""

import json
from pathlib import Path

import pytest
from ordergateway.v1 import errors_pb2

from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.rest_api import exchange
from tests.hostile.http.test_framing import BEARER, BODY, LENGTH, TOKEN, TYPE, request

WRONG = "Authorization: Bearer another-token-0000000001"
PAIRS = {"right and wrong": (BEARER, WRONG), "wrong and right": (WRONG, BEARER), "the same twice": (BEARER, BEARER)}
LINES = {
    "submit": ("POST /api/orders", (TYPE, LENGTH), BODY),
    "list": ("GET /api/orders", (), b""),
    "docs": ("GET /docs", (), b""),
    "metrics": ("GET /metrics", (), b""),
    "Connect": ("POST /ordergateway.v1.OrderService/GetOrder", (TYPE, "Content-Length: 2"), b"{}"),
}


@pytest.mark.parametrize("line", LINES)
async def test_more_than_one_is_refused_whichever_comes_first(tmp_path: Path, line: str) -> None:
    target, headers, body = LINES[line]
    async with running_gateway(tmp_path, token=TOKEN, api_token=TOKEN) as gateway:
        before = gateway.dump()
        for name, pair in PAIRS.items():
            sent = request(target, *pair, *headers, "Connection: close", body=body)
            head, _, answer = (await exchange(gateway.http_port, sent)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 401 "), name
            told = json.loads(answer[answer.index(b"{") : answer.rindex(b"}") + 1])  # it may come in chunks
            assert "Authorization` once" in told.get("msg", told.get("message"))
            if line == "Connect":
                assert told["details"][0]["type"] == errors_pb2.ErrorDetail.DESCRIPTOR.full_name
        assert gateway.dump() == before
        once = request(target, BEARER, *headers, "Connection: close", body=body)
        assert not (await exchange(gateway.http_port, once)).startswith(b"HTTP/1.1 401 ")
