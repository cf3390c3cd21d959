"""A shop and its adapter."""

from collections.abc import AsyncIterator

import pytest

from tests.worker.running_shop import RunningShop, running_shop
from worker.sites.sandbox.adapter import SandboxSite


@pytest.fixture
async def shop() -> AsyncIterator[RunningShop]:
    async with running_shop() as running:
        yield running


@pytest.fixture
async def site(shop: RunningShop) -> AsyncIterator[SandboxSite]:
    adapter = SandboxSite(shop.url, timeout_seconds=5)
    yield adapter
    await adapter.close()
