"""What the order runs of this process work with, and what they tell whoever watches it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from worker.clock import Clock
from worker.evidence.store import DiskSpace, EvidenceStore
from worker.failpoints import Failpoint
from worker.gateway.outbox import Outbox
from worker.gateway.port import OrderLeases
from worker.journal.journal import Journal
from worker.orders.state import OrderState
from worker.sites.port import Page
from worker.sites.scraper import Scraper


class Screenshots(Protocol):
    """Pictures of pages; `unavailable_reason` says why the last one could not be made."""

    unavailable_reason: str | None

    async def capture(self, html: bytes, url: str) -> bytes | None:
        """Return the page as PNG, or None. Raises nothing."""
        ...


class NoScreenshots:
    """Where no pictures are wanted: meta.json says so."""

    def __init__(self) -> None:
        self.unavailable_reason: str | None = "screenshots are switched off (RAKUTEN_SCREENSHOTS)"

    async def capture(self, html: bytes, url: str) -> bytes | None:
        """See Screenshots."""
        del html, url
        return None


@dataclass(frozen=True, slots=True)
class WorkerEvent:
    """Something that a local observer may show: a failpoint passed or an entry of the journal."""

    name: str
    task_id: str
    detail: str = ""


OnEvent = Callable[[WorkerEvent], None]


def ignore_event(event: WorkerEvent) -> None:
    """Do nothing: nobody watches this worker."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings that rule an order. Amount in yen, times in seconds."""

    order_max_total_yen: int | None
    step_seconds: float
    verify_max_pages: int
    lost_answer_look_seconds: float
    lost_answer_interval_seconds: float


@dataclass(frozen=True, slots=True)
class Parts:
    """What every order run of this process works with."""

    journal: Journal
    evidence: EvidenceStore
    disk: DiskSpace
    outbox: Outbox
    gateway: OrderLeases
    clock: Clock
    screenshots: Screenshots
    scraper: Scraper
    failpoint: Failpoint
    on_event: OnEvent
    policy: Policy


async def keep_page(parts: Parts, task_id: str, folder: str, step: str, page: Page, state: OrderState) -> str:
    """Put a page on disk and into the journal's index; return its evidence_ref. Raises OSError and sqlite3.Error."""
    png = await parts.screenshots.capture(page.html, page.url)
    files = parts.evidence.keep(
        folder,
        step,
        page,
        png=png,
        png_missing_because=parts.screenshots.unavailable_reason,
        at=parts.clock.now(),
        state=state,
    )
    await parts.journal.evidence.add(task_id, files)
    return files[0].evidence_ref
