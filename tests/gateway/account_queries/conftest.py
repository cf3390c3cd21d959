"""A gateway whose queries can be used over both transports."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gateway.account_queries.clients import OverGrpc, Queries, over_rest
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime


@pytest.fixture(params=["grpc", "rest"])
def transport(request: pytest.FixtureRequest) -> str:
    """The same case over each transport."""
    transport: str = request.param
    return transport


@pytest.fixture
async def queries(gateway: RunningGateway, transport: str) -> AsyncIterator[Queries]:
    """The queries of `gateway`, which sweeps only when it is used."""
    async for client in _client(gateway, transport):
        yield client


@pytest.fixture
async def sweeping(tmp_path: Path, time: ManualTime) -> AsyncIterator[RunningGateway]:
    """A gateway that sweeps all the time."""
    async with running_gateway(tmp_path / "sweeping", time, sweep_interval_seconds=0.02) as running:
        yield running


@pytest.fixture
async def swept_queries(sweeping: RunningGateway, transport: str) -> AsyncIterator[Queries]:
    """The queries of `sweeping`."""
    async for client in _client(sweeping, transport):
        yield client


@pytest.fixture
def grpc_queries(gateway: RunningGateway) -> OverGrpc:
    """The contract's own services."""
    return OverGrpc(gateway.api.channel)


@pytest.fixture
def swept_grpc(sweeping: RunningGateway) -> OverGrpc:
    """The contract's own services of `sweeping`."""
    return OverGrpc(sweeping.api.channel)


async def _client(gateway: RunningGateway, transport: str) -> AsyncIterator[Queries]:
    if transport == "grpc":
        yield OverGrpc(gateway.api.channel)
    else:
        async with over_rest(gateway.http_port) as client:
            yield client
