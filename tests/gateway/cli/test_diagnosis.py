"""A gateway that does not answer: each cause is told for what it is, in one line."""

import socket
from pathlib import Path

import pytest

from common.exit_codes import Exit
from tests.gateway.api.test_auth import certificates  # noqa: F401 - a fixture
from tests.gateway.cli.command import Commands
from tests.gateway.support.in_process import RunningGateway, running_gateway


async def told(url: str, **settings: str) -> str:
    """What `health` says of that address."""
    ran = await Commands({"RAKUTEN_ORDER_GATEWAY_URL": url, **settings}).run("health")
    assert ran.code == Exit.UNREACHABLE, ran
    assert ran.err.count("\n") == 1
    return ran.err


async def test_of_a_gateway_in_plain_text(gateway: RunningGateway, tmp_path: Path) -> None:
    assert "there is no TLS at localhost" in await told(f"grpcs://localhost:{gateway.port}")
    for scheme, words in (("grpc", "speaks HTTP/1.1, so it is the gateway's HTTP port"), ("grpcs", "there is no TLS")):
        assert words in await told(f"{scheme}://127.0.0.1:{gateway.http_port}")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        nobody = await told(f"grpc://127.0.0.1:{unused.getsockname()[1]}")
    assert "nothing listens at 127.0.0.1" in nobody
    assert "cannot be resolved" in await told("grpc://no-such-host.invalid")


@pytest.mark.needs("openssl")
async def test_of_a_gateway_with_tls(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811 - as above
    monkeypatch.chdir(certificates)
    files = {"gateway_tls_cert": certificates / "server.pem", "gateway_tls_key": certificates / "server.key"}
    mutual = files | {"gateway_tls_client_ca": certificates / "ca.pem"}
    ours = {"RAKUTEN_GATEWAY_CA": str(certificates / "ca.pem")}
    async with running_gateway(certificates, api_token="api-token-of-the-tests", **files) as running:
        grpc, http = f"localhost:{running.port}", f"localhost:{running.http_port}"
        untrusted = await told(f"grpcs://{grpc}")
        assert "the certificate of the gateway at localhost" in untrusted
        assert "is not trusted here" in untrusted
        assert "RAKUTEN_GATEWAY_CA" in untrusted
        for address in (grpc, http):
            assert "write grpcs:// instead of grpc://" in await told(f"grpc://{address}")
        assert "speaks HTTP/1.1" in await told(f"grpcs://{http}", **ours)
        assert "is for another name than 127.0.0.1" in await told(f"grpcs://127.0.0.1:{running.port}", **ours)
    async with running_gateway(certificates / "mutual", api_token="api-token-of-the-tests", **mutual) as running:
        refused = await told(f"grpcs://localhost:{running.port}", **ours)
        assert "RAKUTEN_OPERATOR_TLS_CERT" in refused
