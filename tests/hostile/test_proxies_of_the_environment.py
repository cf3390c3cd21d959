"""HTTP_PROXY and its like: nothing that carries a token goes to whom the environment names and the settings do not."""

import ast
import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from ordergateway.v1 import orders_pb2

from common.exit_codes import CommandError
from gateway.cli.client import connected
from tests.worker.conftest import make_settings
from tests.worker.recording_proxy import RecordingProxy
from tests.worker.running_shop import RunningShop, running_shop
from worker.composition import open_scraper
from worker.gateway.client import GatewayClient, open_channel
from worker.gateway.port import Unreachable

REPOSITORY = Path(__file__).parents[2]
CLIENTS = {"AsyncClient", "Client", "AsyncHTTPTransport", "HTTPTransport", "get", "post", "request", "stream"}
CHANNELS = {"insecure_channel", "secure_channel"}


@pytest.fixture
async def shop() -> AsyncIterator[RunningShop]:
    async with running_shop() as shop:
        yield shop


@pytest.fixture
async def proxy(shop: RunningShop, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[RecordingProxy]:
    """A proxy on loopback that every variable of the environment names."""
    async with RecordingProxy(shop.url) as proxy:
        for name in ("http_proxy", "https_proxy", "all_proxy", "grpc_proxy"):
            monkeypatch.setenv(name, proxy.url)
            monkeypatch.setenv(name.upper(), proxy.url)
        for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
            monkeypatch.delenv(name, raising=False)
        yield proxy


async def test_the_scraper_is_asked_itself(shop: RunningShop, proxy: RecordingProxy, tmp_path: Path) -> None:
    settings = make_settings(tmp_path, scraper_base_url=shop.url, scraper_token="sandbox-token")
    async with AsyncExitStack() as stack:
        scraper = await open_scraper(settings, stack)
        assert await scraper.first_variant_in_stock(shop.item_url("tshirt-basic")) == "white-m"
    assert proxy.connections == []


async def test_the_gateway_is_asked_itself(proxy: RecordingProxy, tmp_path: Path) -> None:
    settings = make_settings(tmp_path, order_gateway_url="grpcs://gateway.invalid:1", worker_token="t" * 32)
    async with open_channel(settings) as channel:
        client = GatewayClient(channel, worker_id="w", session_id="s" * 16, journal_id="j" * 16, token="t")
        with pytest.raises(Unreachable):
            await client.renew("po-1", "token", seconds=2)
    assert proxy.connections == []


async def test_the_commands_ask_the_gateway_itself(
    proxy: RecordingProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def call() -> None:
        with connected("grpcs://gateway.invalid:1") as client:
            client.call(client.orders.ListOrders, orders_pb2.ListOrdersRequest(), seconds=2)

    with pytest.raises(CommandError):
        await asyncio.to_thread(call)
    assert proxy.connections == []


def calls_of(package: str) -> Iterator[tuple[str, ast.Call]]:
    for path in sorted((REPOSITORY / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                yield f"{path.relative_to(REPOSITORY)}:{node.lineno}", node


@pytest.mark.parametrize(
    "package", ["gateway", "worker", "demo", "bench", "examples", "scripts", "clients/python/ordergateway/client"]
)
def test_no_client_of_the_project_looks_for_a_proxy(package: str) -> None:
    for where, call in calls_of(package):
        assert isinstance(call.func, ast.Attribute)
        owner = ast.unparse(call.func.value)
        if owner == "httpx" and call.func.attr in CLIENTS:
            assert "trust_env=False" in ast.unparse(call), where
        if owner in ("grpc", "grpc.aio") and call.func.attr in CHANNELS:
            assert "options=" in ast.unparse(call), where
        assert not ast.unparse(call.func).endswith("urlopen"), where
    text = "\n".join(path.read_text() for path in sorted((REPOSITORY / package).rglob("*.py")))
    channels = sum(text.count(f"{name}(") for name in ("grpc.insecure_channel", "grpc.aio.insecure_channel"))
    of_the_library = "from ordergateway.client.channels import OPTIONS" in text
    assert of_the_library or text.count('("grpc.enable_http_proxy", 0)') >= bool(channels)
