"""A sandbox shop on a real socket, inside the test's own loop."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from sandbox_shop.control_client import ShopControl
from sandbox_shop.server import serve_shop
from sandbox_shop.shop import Shop, ShopSettings


@dataclass
class RunningShop:
    """The shop's address, its state (to look at or change directly), and a client of its control API."""

    url: str
    shop: Shop
    control: ShopControl

    def item_url(self, code: str) -> str:
        return self.url + self.shop.products[code].path


@asynccontextmanager
async def running_shop(
    settings: ShopSettings | None = None, now: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> AsyncIterator[RunningShop]:
    """Serves a fresh shop that shows new orders at once unless `settings` say otherwise."""
    shop = Shop(settings or ShopSettings(reflection_delay_seconds=0), now)
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(serve_shop(shop, "127.0.0.1", 0, ready.set_result))
    try:
        url = await asyncio.wait_for(ready, 60)
        async with ShopControl(url) as control:
            yield RunningShop(url, shop, control)
    finally:
        serving.cancel()
        with suppress(asyncio.CancelledError):
            await serving


def no_look() -> None:
    """It is never too late."""
