"""`python -m tests.hostile.shop`: what each burning page costs a worker, as rows of the table in docs/security.md."""

import asyncio
import time
from contextlib import suppress
from dataclasses import replace

import psutil

from tests.hostile.shop.tampering_shop import tampering_shop
from tests.hostile.shop.test_burning_pages import BURNING
from worker.sites.port import Item, PageChangedError
from worker.sites.sandbox.adapter import SandboxSite

TICK = 0.005


class Watch:
    """Turns with the loop; keeps the longest stall (s) and the most memory that a process reading pages had (MiB)."""

    def __init__(self) -> None:
        self.stall = 0.0
        self.memory = 0.0

    async def run(self) -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(TICK)
            self.stall = max(self.stall, time.perf_counter() - before - TICK)
            with suppress(psutil.Error):
                for child in psutil.Process().children():
                    self.memory = max(self.memory, child.memory_info().rss / 1024**2)


async def main() -> None:
    """Prints the rows."""
    async with tampering_shop() as shop:
        for name, html in BURNING.items():
            body = f'<body><div id="cart">{html}'.encode()[: 4 * 1024 * 1024]
            site = SandboxSite(shop.url)
            shop.tampers.clear()
            await site.add_to_cart(Item(shop.item_url("sencha-100g")))
            shop.arm("GET", "/cart", lambda answer, body=body: replace(answer, body=body))  # type: ignore[misc]
            watch = Watch()
            watching = asyncio.create_task(watch.run())
            begun = time.perf_counter()
            with suppress(PageChangedError):
                await site.read_cart()
            seconds = time.perf_counter() - begun
            watching.cancel()
            await site.close()
            size = f"{len(body) / 1024:,.0f}"
            print(f"| {name} | {size} | {seconds:.1f} | {watch.stall * 1000:.0f} | {watch.memory:.0f} |", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
