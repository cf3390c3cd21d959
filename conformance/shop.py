"""The sandbox shop of the kit, which writes each request into the story of the order that is in hand."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from sandbox_shop.server import serve_shop
from sandbox_shop.shop import Shop, ShopSettings

ITEM = "sencha-100g"


class WatchedShop(Shop):
    """A shop that tells of each request when it comes, before it takes effect."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__(ShopSettings(reflection_delay_seconds=0))
        self._tell = tell

    def count_request(self, step: str) -> None:
        """See Shop."""
        self._tell(step)
        super().count_request(step)

    @property
    def has_full_carts(self) -> bool:
        """True if something lies in anybody's cart."""
        return any(self._carts.values())


@asynccontextmanager
async def serving(shop: Shop) -> AsyncIterator[str]:
    """Serve on a free loopback port; yields the shop's URL."""
    url: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    served = asyncio.create_task(serve_shop(shop, "127.0.0.1", 0, url.set_result))
    try:
        yield await url
    finally:
        served.cancel()
        with suppress(asyncio.CancelledError):
            await served
