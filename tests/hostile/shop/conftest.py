"""A hostile shop, and the real adapter that buys there."""

from collections.abc import AsyncIterator

import pytest

from tests.hostile.shop.tampering_shop import TamperingShop, tampering_shop
from worker.sites.sandbox.adapter import SandboxSite


@pytest.fixture
async def shop() -> AsyncIterator[TamperingShop]:
    async with tampering_shop() as hostile:
        yield hostile


@pytest.fixture
async def site(shop: TamperingShop) -> AsyncIterator[SandboxSite]:
    adapter = SandboxSite(shop.url, timeout_seconds=5, reading_seconds=0.25)
    yield adapter
    await adapter.close()
