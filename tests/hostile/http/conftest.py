"""A gateway in the test's process, whose times a test may shorten."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.gateway.support.in_process import RunningGateway, running_gateway


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    """The whole gateway on real sockets, without a token."""
    async with running_gateway(tmp_path) as running:
        yield running
