"""Calls over gRPC: what refusals become, what counts as no answer, and that nobody waits for ever."""

import asyncio
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from ordergateway.v1 import errors_pb2
from ordergateway.v1.order_leases_pb2_grpc import add_OrderLeaseServiceServicer_to_server

from tests.worker.conftest import eventually, make_settings
from tests.worker.scripted_gateway import Refusal, ScriptedGateway, serving
from worker.gateway.client import GatewayClient, open_channel
from worker.gateway.port import Refused, Unreachable


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ScriptedGateway()


@pytest.fixture
async def client(gateway: ScriptedGateway, tmp_path: Path) -> AsyncIterator[GatewayClient]:
    async with (
        serving(gateway) as target,
        open_channel(make_settings(tmp_path, order_gateway_url=f"grpc://{target}")) as channel,
    ):
        yield GatewayClient(channel, worker_id="w", session_id="s" * 16, journal_id="j" * 16, token="t")


async def test_a_refusal_comes_with_its_detail(gateway: ScriptedGateway, client: GatewayClient) -> None:
    late = Refusal(
        grpc.StatusCode.FAILED_PRECONDITION,
        errors_pb2.ERROR_REASON_LEASE_INVALID,
        retry_after=1.5,
        recorded_late=True,
    )
    gateway.script["RenewLease"] = [late]
    with pytest.raises(Refused) as refusal:
        await client.renew("po-1", "token", seconds=5)
    assert refusal.value.reason == errors_pb2.ERROR_REASON_LEASE_INVALID
    assert refusal.value.reason_name == "LEASE_INVALID"
    assert refusal.value.retry_after == 1.5
    assert refusal.value.recorded_late
    assert str(refusal.value) == "refused by the script"


@pytest.mark.parametrize("code", ["UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "UNKNOWN", "CANCELLED"])
async def test_no_answer_is_no_refusal(gateway: ScriptedGateway, client: GatewayClient, code: str) -> None:
    gateway.script["RenewLease"] = [Refusal(grpc.StatusCode[code])]
    with pytest.raises(Unreachable):
        await client.renew("po-1", "token", seconds=5)


@pytest.mark.parametrize(
    "code",
    [
        "UNIMPLEMENTED",
        "NOT_FOUND",
        "FAILED_PRECONDITION",
        "RESOURCE_EXHAUSTED",
        "INVALID_ARGUMENT",
        "ABORTED",
        "OUT_OF_RANGE",
    ],
)
async def test_what_does_not_bear_the_gateways_own_reason_is_no_refusal(
    gateway: ScriptedGateway, client: GatewayClient, code: str
) -> None:
    unreadable = Refusal(grpc.StatusCode[code], errors_pb2.ERROR_REASON_LEASE_INVALID, unreadable=True)
    gateway.script["RenewLease"] = [Refusal(grpc.StatusCode[code]), unreadable]
    for _ in range(2):
        with pytest.raises(Unreachable, match=f"is something else, or an older version, at its address. {code}"):
            await client.renew("po-1", "token", seconds=5)


async def test_too_many_calls_are_for_later(gateway: ScriptedGateway, client: GatewayClient) -> None:
    too_many = Refusal(grpc.StatusCode.RESOURCE_EXHAUSTED, errors_pb2.ERROR_REASON_TOO_MANY)
    gateway.script["RenewLease"] = [too_many]
    with pytest.raises(Unreachable):
        await client.renew("po-1", "token", seconds=5)


@pytest.mark.parametrize("code", ["UNAUTHENTICATED", "PERMISSION_DENIED"])
async def test_a_token_that_is_not_accepted_is_told_apart(
    gateway: ScriptedGateway, client: GatewayClient, code: str
) -> None:
    gateway.script["LeaseOrders"] = [Refusal(grpc.StatusCode[code])]
    with pytest.raises(Refused) as refusal:
        await client.lease(["sandbox"], 1)
    assert refusal.value.is_credentials


async def test_an_empty_queue_is_none(client: GatewayClient) -> None:
    assert await client.lease(["sandbox"], 0.05) is None


async def test_a_silent_stream_is_given_up(
    gateway: ScriptedGateway, client: GatewayClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.gateway.client.SILENCE_SECONDS", 0.1)
    with pytest.raises(Unreachable, match="silent"):
        await client.lease(["sandbox"], 30)


async def test_a_call_that_hangs_ends_at_its_deadline(gateway: ScriptedGateway, client: GatewayClient) -> None:
    async def hang(method: str, request: object) -> None:
        await asyncio.Event().wait()

    gateway.on_call = hang
    with pytest.raises(Unreachable):
        await client.renew("po-1", "token", seconds=0.1)


async def test_a_cancelled_wait_takes_nothing_from_the_queue(gateway: ScriptedGateway, client: GatewayClient) -> None:
    waiting = asyncio.ensure_future(client.lease(["sandbox"], 30))
    await gateway.called("LeaseOrders")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await eventually(lambda: gateway.open_streams == 0)
    gateway.offer("po-1", "{}")
    lease = await client.lease(["sandbox"], 5)
    assert lease is not None
    assert lease.task_id == "po-1"


@pytest.mark.needs("openssl")
async def test_over_tls_with_a_client_certificate(gateway: ScriptedGateway, tmp_path: Path) -> None:
    key, certificate = await self_signed(tmp_path)
    server = grpc.aio.server()
    add_OrderLeaseServiceServicer_to_server(gateway, server)
    credentials = grpc.ssl_server_credentials(
        [(key.read_bytes(), certificate.read_bytes())], certificate.read_bytes(), require_client_auth=True
    )
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    trusting = {"order_gateway_url": f"grpcs://localhost:{port}", "gateway_ca": certificate}
    known = {"worker_tls_cert": certificate, "worker_tls_key": key}
    try:
        for settings, welcome in (
            (trusting | known, True),
            (trusting, False),
            ({**trusting, "gateway_ca": None}, False),
        ):
            async with open_channel(make_settings(tmp_path, **settings)) as channel:
                client = GatewayClient(channel, worker_id="w", session_id="s", journal_id="j", token="t")
                if welcome:
                    assert (await client.renew("po-1", "token", seconds=5)).task_id == "po-1"
                else:
                    with pytest.raises(Unreachable):
                        await client.renew("po-1", "token", seconds=5)
    finally:
        await server.stop(0)


async def self_signed(folder: Path) -> tuple[Path, Path]:
    key, certificate = folder / "key.pem", folder / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(certificate), "-days", "1", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True)
    return key, certificate


@pytest.mark.needs("openssl")
async def test_ends_that_do_not_agree_about_tls_are_told_what_to_look_at(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    key, certificate = await self_signed(tmp_path)
    tls = grpc.aio.server()
    add_OrderLeaseServiceServicer_to_server(gateway, tls)
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    port = tls.add_secure_port("127.0.0.1:0", credentials)
    await tls.start()
    try:
        async with serving(gateway) as plain:
            for url, hint in (
                (f"grpcs://{plain}", "is TLS on at the gateway?"),
                (f"grpc://127.0.0.1:{port}", "its address begins with grpcs://"),
                (f"grpcs://localhost:{port}", "see RAKUTEN_GATEWAY_CA"),
            ):
                async with open_channel(make_settings(tmp_path, order_gateway_url=url)) as channel:
                    client = GatewayClient(channel, worker_id="w", session_id="s", journal_id="j", token="t")
                    with pytest.raises(Unreachable) as failure:
                        await client.probe()
                    assert hint in str(failure.value)
    finally:
        await tls.stop(0)


async def test_the_first_answer_and_the_first_after_an_outage_are_told(
    gateway: ScriptedGateway, client: GatewayClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "worker.gateway.connectivity")
    gateway.script["RenewLease"] = [
        None,
        Refusal(grpc.StatusCode.INVALID_ARGUMENT, errors_pb2.ERROR_REASON_INVALID_FIELD),
        Refusal(grpc.StatusCode.UNAVAILABLE),
        None,
        Refusal(grpc.StatusCode.UNAUTHENTICATED, errors_pb2.ERROR_REASON_UNAUTHENTICATED),
    ]
    await client.probe()
    await client.probe()
    assert caplog.messages == ["gateway reached"]
    with pytest.raises(Unreachable):
        await client.probe()
    await client.probe()
    assert caplog.messages == ["gateway reached", "gateway reached again"]
    with pytest.raises(Refused):
        await client.probe()
