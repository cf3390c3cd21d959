"""A gateway for every taste: its use cases, the whole of it in process, or as a process of its own."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.gateway.support.book import Book
from tests.gateway.support.grpc_api import GrpcApi
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime
from tests.gateway.support.process import GatewayProcess, gateway_process


@pytest.fixture
def time() -> ManualTime:
    """A machine whose clocks stand still."""
    return ManualTime()


@pytest.fixture
def book(tmp_path: Path, time: ManualTime) -> Iterator[Book]:
    """The use cases on a real SQLite file, without any transport."""
    with Book(tmp_path / "gateway.db", time) as made:
        yield made


@pytest.fixture
async def gateway(tmp_path: Path, time: ManualTime) -> AsyncIterator[RunningGateway]:
    """The whole gateway in process on real sockets, under `time`, without a token."""
    async with running_gateway(tmp_path, time) as running:
        yield running


@pytest.fixture
def api(gateway: RunningGateway) -> GrpcApi:
    """A client of `gateway`."""
    return gateway.api


@pytest.fixture
async def process(tmp_path: Path) -> AsyncIterator[GatewayProcess]:
    """`order-gateway serve` as a process of its own, with the machine's real clocks."""
    async with gateway_process(tmp_path) as running:
        yield running
