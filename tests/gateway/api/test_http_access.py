"""Who may call what over HTTP, and that no token is told to anybody."""

import asyncio
import base64
import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.api.auth.access import ACCESS
from gateway.api.auth.authenticator import Role
from gateway.api.connect.app import CONNECT_SERVICES
from tests.gateway.api.test_auth import OF_ROLE, STREAMS, TOKENS
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.rest_api import data_of, envelope_of, lease, post, rest_client, submit

OPEN = {"/livez", "/readyz"}


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, token="api-token-1", **TOKENS) as running:
        yield running


async def routes(client: httpx.AsyncClient) -> list[tuple[str, str, str | None]]:
    """Method, path and mirrored method of the contract of every route."""
    document = (await client.get("/openapi.json")).json()
    return [
        (method.upper(), path.format(task_id="po-1", query_id="aq-1"), operation.get("x-mirrors"))
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


async def test_every_route_mirrors_a_method_and_lets_in_the_same_roles(guarded: RunningGateway) -> None:
    async with rest_client(guarded.http_port, "api-token-1") as client:
        known = await routes(client)
    assert len(known) >= 17
    for role, token in OF_ROLE.items():
        async with rest_client(guarded.http_port, token) as client:
            for method, path, mirrored in known:
                if path in OPEN:
                    assert mirrored is None
                    continue
                assert mirrored is not None, path
                answer = await client.request(method, path, params={"wait": 0})
                refused = answer.status_code == 403
                assert refused is (role not in ACCESS[mirrored]), (role, path)
                if refused:
                    assert envelope_of(answer)["code"] == 403


async def test_several_authorizations_are_refused_whichever_of_them_is_valid(guarded: RunningGateway) -> None:
    connect = "/ordergateway.v1.OperationsService/GetHealth"
    async with rest_client(guarded.http_port) as client:
        for method, path in (("GET", "/health"), ("POST", connect), ("GET", "/docs"), ("GET", "/openapi.json")):
            body = {"json": {}} if method == "POST" else {}
            assert (await client.request(method, path, headers=bearers("api-token-1"), **body)).is_success, path
            for tokens in (("api-token-1", "wrong"), ("wrong", "api-token-1"), ("api-token-1", "api-token-1")):
                answer = await client.request(method, path, headers=bearers(*tokens), **body)
                assert answer.status_code == 401, (path, tokens)
                assert "once; this call has several" in answer.text


def bearers(*tokens: str) -> list[tuple[str, str]]:
    return [("Authorization", f"Bearer {token}") for token in tokens]


async def test_without_a_token_only_the_probes_answer(guarded: RunningGateway) -> None:
    async with rest_client(guarded.http_port, "api-token-1") as client:
        known = await routes(client)
    before = guarded.dump()
    async with rest_client(guarded.http_port) as client:
        for method, path, _ in [
            *known,
            ("GET", "/openapi.json", None),
            ("GET", "/docs", None),
            ("GET", "/metrics", None),
        ]:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic YXBpOmFwaS10b2tlbi0x"}):
                if "Basic" in headers.get("Authorization", "") and path in ("/openapi.json", "/docs"):
                    continue
                # A body that is far too large is not even looked at.
                answer = await client.request(method, path, headers=headers, content=b"x" if method == "POST" else None)
                if path in OPEN:
                    assert data_of(answer) is None
                else:
                    assert (path, answer.status_code, envelope_of(answer)["code"]) == (path, 401, 401)
                    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert guarded.dump() == before


async def test_a_browser_opens_the_pages_with_a_token_as_password_and_nothing_else(guarded: RunningGateway) -> None:
    basic = {"Authorization": "Basic " + base64.b64encode(b"me:worker-token-1").decode()}
    async with rest_client(guarded.http_port) as client:
        refused = await client.get("/docs")
        assert "Basic" in refused.headers["www-authenticate"]
        for path in ("/docs", "/docs/docs.js", "/docs/docs.css", "/openapi.json"):
            answer = await client.get(path, headers=basic)
            assert answer.status_code == 200
        assert "default-src 'none'" in (await client.get("/docs", headers=basic)).headers["content-security-policy"]
        assert (await client.get("/health", headers=basic)).status_code == 401
        for broken in ("Basic", "Basic !", "Basic " + base64.b64encode(b"\xff:x").decode()):
            assert (await client.get("/docs", headers={"Authorization": broken})).status_code == 401


async def test_roles_over_connect_are_those_over_grpc(guarded: RunningGateway) -> None:
    offered = [path for path in ACCESS if path.split("/")[1] in CONNECT_SERVICES]
    assert len(offered) >= 20
    for token, role in [(None, None), *((token, role) for role, token in OF_ROLE.items())]:
        async with rest_client(guarded.http_port, token) as client:
            for path in offered:
                code = await connect_code(client, path)
                if role is None:
                    assert code == "unauthenticated", path
                else:
                    assert (code == "permission_denied") is (role not in ACCESS[path]), (role, path)


async def connect_code(client: httpx.AsyncClient, path: str) -> str | None:
    """The error code of a call without any field."""
    if path.rpartition("/")[2] in STREAMS:
        headers = {"Content-Type": "application/connect+json"}
        answer = await client.post(path, content=b"\0\0\0\0\2{}", headers=headers)
        frame: dict[str, Any] = httpx.Response(200, content=answer.content[5:]).json()
        return str(frame["error"]["code"]) if "error" in frame else None
    answer = await post(client, path, {})
    return None if answer.status_code == 200 else str(answer.json()["code"])


async def test_the_workers_streams_are_not_offered_over_connect(guarded: RunningGateway) -> None:
    async with rest_client(guarded.http_port, "api-token-1") as client:
        for path in ACCESS:
            if path.split("/")[1] not in CONNECT_SERVICES:
                assert (await post(client, path, {})).status_code == 404


async def test_who_called_is_in_the_history(guarded: RunningGateway) -> None:
    for token, task_id in (("upstream-token", "po-1"), ("api-token-2", "po-2")):
        async with rest_client(guarded.http_port, token) as client:
            await submit(client, task_id)
    actors = [row["actor"] for row in guarded.rows("SELECT actor FROM events ORDER BY sequence")]
    assert actors == ["upstream", "api#2"]


async def test_no_token_is_in_the_log_though_it_stands_in_header_query_and_body(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("httpx").setLevel(logging.WARNING)  # the test's own client tells its URLs
    logging.getLogger("httpcore").setLevel(logging.WARNING)
    async with (
        running_gateway(tmp_path, token="api-token-1", **TOKENS) as guarded,
        rest_client(guarded.http_port, "api-token-1") as client,
    ):
        await submit(client)
        token = (await lease(client))["lease_token"]
        told = {"worker_id": "w1", "lease_token": token, "state": "in_cart"}
        data_of(await post(client, "/api/orders/po-1/report", told))
        await post(client, "/api/orders/po-1/report", told | {"state": "no state"})
        await client.get(f"/api/orders?token=api-token-1&lease_token={token}")
        await client.get("/health", headers={"Authorization": "Bearer wrong-token-9"})
    access = [record.getMessage() for record in caplog.records if record.name == "gateway.access"]
    assert [line.rsplit(" ", 3)[0] for line in access][:2] == ["POST /api/orders", "GET /api/orders/lease"]
    for secret in ("api-token-1", "wrong-token-9", token):
        assert secret not in caplog.text


async def test_a_rate_limit_holds_for_each_token_by_itself(tmp_path: Path) -> None:
    async with running_gateway(tmp_path, token="api-token-1", rate_limit_per_second=3, **TOKENS) as guarded:
        async with rest_client(guarded.http_port, "upstream-token") as client:
            begun = time.monotonic()
            answers = await asyncio.gather(*(client.get("/api/orders") for _ in range(20)))
            most = 3 + 3 * (time.monotonic() - begun)
            refused = [answer for answer in answers if answer.status_code == 429]
            assert refused
            assert 3 <= len(answers) - len(refused) <= most
            assert all(answer.headers["retry-after"] == "1" for answer in refused)
            assert (await client.get("/readyz")).status_code == 200
        async with rest_client(guarded.http_port, "operator-token") as client:
            assert (await client.get("/api/orders")).status_code == 200


def test_the_roles_of_the_tests_are_all_roles() -> None:
    assert OF_ROLE.keys() == set(Role)


@pytest.mark.parametrize("path", ["/api/orders", "/ordergateway.v1.OrderService/SubmitOrder"])
async def test_pages_of_another_origin_may_not_call(guarded: RunningGateway, path: str) -> None:
    asked = {"Origin": "https://elsewhere.example", "Access-Control-Request-Method": "POST"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{guarded.http_port}", trust_env=False) as client:
        answer = await client.options(path, headers=asked)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control-")]
