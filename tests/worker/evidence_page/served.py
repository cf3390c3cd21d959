"""A page of evidence that is served, of what a store has really kept."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx

from worker.evidence.store import EvidenceStore, Step
from worker.evidence_page.pages import EvidencePages
from worker.evidence_page.server import serve
from worker.journal.records import EvidenceFile
from worker.orders.state import OrderState
from worker.sites.page_reader import PageReader
from worker.sites.port import Page

AT = datetime(2026, 11, 30, 1, 2, 3, tzinfo=UTC)
PICTURE = b"\x89PNG\r\n\x1a\n of a page"


@dataclass
class Kept:
    """A folder of evidence, and what the journal says of it."""

    root: Path
    index: list[EvidenceFile] = field(default_factory=list)

    def keep(self, html: bytes, step: str = Step.ORDER_CONFIRM, *, url: str = "https://shop.example/confirm") -> None:
        page = Page(url=url, method="POST", http_status=200, html=html)
        self.index += EvidenceStore(self.root).keep(
            "po-1", step, page, png=PICTURE, png_missing_because=None, at=AT, state=OrderState.IN_CART
        )

    async def read_index(self) -> list[EvidenceFile]:
        return self.index


@dataclass
class Served:
    """Where it is: the address with its key, and the same without."""

    url: str

    @property
    def origin(self) -> str:
        return self.url[: self.url.index("/", len("http://"))]

    def client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, trust_env=False, timeout=60)


@asynccontextmanager
async def serving(kept: Kept) -> AsyncIterator[Served]:
    """Serve it until the end of the block."""
    stop = asyncio.Event()
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    reader = PageReader()
    pages = EvidencePages("po-1", kept.root, kept.read_index, reader)
    task = asyncio.create_task(serve(pages, 0, stop, ready.set_result))
    await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield Served(ready.result())
    finally:
        stop.set()
        await task
        await reader.close()
