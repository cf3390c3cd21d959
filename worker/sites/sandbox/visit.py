"""A visit to the sandbox shop: its pages, as the logged-in account comes to them."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime

import httpx

from worker.sites.page_reader import PageReader
from worker.sites.port import Page, PageChangedError, SiteError
from worker.sites.sandbox.http import Answer, SandboxHttp
from worker.sites.sandbox.pages import read_refusal

HTTP_NOT_FOUND = 404
HTTP_ERROR = 400


class Visit:
    """One account's requests over `http`, whose pages are read by `reader`."""

    def __init__(self, http: SandboxHttp, reader: PageReader) -> None:
        self.http = http
        self.reader = reader

    async def page_at(self, path: str, params: Mapping[str, str] | None = None) -> Page:
        """Return the page at a path. Raises PageChangedError where the shop shows another one, and as `fine` does."""
        answer = await self.fine(await self.http.get(path, params))
        if answer.location is not None:
            raise PageChangedError(f"instead of {path} the shop shows {answer.location}", page=answer.page)
        return answer.page

    async def landed(self, answer: Answer) -> Page:
        """Return the page to which a redirect leads, or the answer's own."""
        fine = await self.fine(answer)
        return fine.page if fine.location is None else await self.page_at(fine.location)

    async def landed_if_possible(self, answer: Answer) -> Page:
        """As `landed`, but the redirect itself where the page cannot be had: what was done is done."""
        with suppress(SiteError, OSError, httpx.HTTPError):
            return await self.landed(answer)
        return answer.page

    async def fine(self, answer: Answer) -> Answer:
        """Return the answer. Raises SiteError where the shop refuses or fails."""
        page = answer.page
        if page.http_status >= HTTP_ERROR:
            said = await self.refusal(page) or "no reason given"
            raise SiteError(f"the shop answered HTTP {page.http_status}: {said}", page=page)
        return answer.sound()

    async def refusal(self, page: Page) -> str | None:
        """Return what a page says it refuses; None where it refuses nothing, or cannot be read."""
        with suppress(PageChangedError):
            return await self.reader.read(read_refusal, page)
        return None


def in_utc(instant: datetime | None) -> datetime | None:
    """Return a time that the reading process sent as one of the standard library's UTC."""
    return None if instant is None else instant.astimezone(UTC)
