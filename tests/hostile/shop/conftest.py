"""A hostile shop, the real adapter that buys there, and a worker between it and a scripted gateway."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.hostile.shop.tampering_shop import TamperingShop, tampering_shop
from tests.worker.conftest import Bench
from tests.worker.scripted_gateway import ScriptedGateway, serving
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


@pytest.fixture
async def hostile(tmp_path: Path, shop: TamperingShop) -> AsyncIterator[Bench]:
    gateway = ScriptedGateway()
    async with serving(gateway) as target:
        yield Bench(tmp_path, gateway, target, shop)  # type: ignore[arg-type]
