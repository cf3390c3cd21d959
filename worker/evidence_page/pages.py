"""The pages: what was kept of a task, and each page of it with its picture, itself made inert, and its hashes."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from common.escapes import escape_controls
from worker.evidence.decoding import decode_html
from worker.evidence.screenshots import MAX_HTML_BYTES
from worker.evidence_page.guard import INERT_POLICY
from worker.evidence_page.inert import inert_page
from worker.evidence_page.kept import KeptPage, kept_pages
from worker.journal.records import EvidenceFile
from worker.sites.page_reader import PageReader
from worker.sites.port import Page, PageChangedError

_TEMPLATES: Final = Environment(
    loader=PackageLoader("worker.evidence_page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
)

_TEMPLATES.filters["shown"] = lambda value: escape_controls(str(value))

MAX_SOURCE_IN_FRAME_BYTES: Final = 256 * 1024
"""Of a page that cannot be shown; the whole is behind the link to its source."""

ReadIndex = Callable[[], Awaitable[Sequence[EvidenceFile]]]
"""Reads which files the journal knows of the task."""


class EvidencePages:
    """The application. Files are named by their place in the journal's list, never by a path of the browser's."""

    def __init__(self, task_id: str, root: Path, read_index: ReadIndex, reader: PageReader) -> None:
        """`reader` makes pages inert, in its process; whoever gives it closes it."""
        self._task_id = task_id
        self._root = root
        self._read_index = read_index
        self._reader = reader

    def app(self, key: str) -> Starlette:
        """Return it, with its paths under the key."""
        return Starlette(
            routes=[
                Route(f"/{key}/", self.index),
                Route(f"/{key}/style.css", _style),
                Route(f"/{key}/{{number:int}}", self.page),
                Route(f"/{key}/{{number:int}}/inert", self.inert_page),
                Route(f"/{key}/{{number:int}}/source", self.source),
                Route(f"/{key}/{{number:int}}/picture", self.picture),
            ]
        )

    async def index(self, _request: Request) -> Response:
        """Show the list of what was kept."""
        pages = await self._pages()
        return _html("index.html", task_id=self._task_id, pages=list(enumerate(pages)), root=self._root)

    async def page(self, request: Request) -> Response:
        """Show one page with everything about it."""
        pages = await self._pages()
        number, page = self._asked(request, pages)
        return _html(
            "page.html",
            task_id=self._task_id,
            number=number,
            last=len(pages) - 1,
            page=page,
            meta="\n".join(map(escape_controls, json.dumps(page.meta, ensure_ascii=False, indent=2).split("\n"))),
            too_large=len(page.data("html") or b"") > MAX_HTML_BYTES,
        )

    async def inert_page(self, request: Request) -> Response:
        """Show the page itself, in its frame and nowhere else: alone in a window it would look like the site."""
        if request.headers.get("sec-fetch-dest", "iframe") != "iframe":
            raise HTTPException(404)
        data = await self._data(request, "html")
        if len(data) > MAX_HTML_BYTES:
            raise HTTPException(413)
        headers = {"Content-Security-Policy": INERT_POLICY}
        try:
            html = await self._reader.read(inert_page, Page("that was kept", "GET", 200, data))
        except PageChangedError as error:
            source = decode_html(data[:MAX_SOURCE_IN_FRAME_BYTES])
            why = (
                f"Too large to show, or made to deceive ({error}); here is its source as text, or the beginning of it."
            )
            return PlainTextResponse(f"{why}\n\n{source}", 200, headers)
        return Response(html, 200, headers, "text/html; charset=utf-8")

    async def source(self, request: Request) -> Response:
        """Show the page's own text, which is what was written."""
        headers = {"Content-Security-Policy": INERT_POLICY}
        return Response(decode_html(await self._data(request, "html")), 200, headers, "text/plain; charset=utf-8")

    async def picture(self, request: Request) -> Response:
        """Show the screenshot."""
        headers = {"Content-Security-Policy": INERT_POLICY}
        return Response(await self._data(request, "png"), 200, headers, "image/png")

    async def _pages(self) -> list[KeptPage]:
        index = await self._read_index()
        return await asyncio.to_thread(lambda: list(kept_pages(self._root, index)))

    async def _data(self, request: Request, kind: str) -> bytes:
        _, page = self._asked(request, await self._pages())
        data = page.data(kind)
        if data is None:
            raise HTTPException(404, "it is gone, or no longer what was written")
        return data

    @staticmethod
    def _asked(request: Request, pages: Sequence[KeptPage]) -> tuple[int, KeptPage]:
        number: int = request.path_params["number"]
        if number >= len(pages):
            raise HTTPException(404)
        return number, pages[number]


async def _style(_request: Request) -> Response:
    return PlainTextResponse(files(__package__).joinpath("templates/style.css").read_bytes(), media_type="text/css")


def _html(template: str, **values: Any) -> Response:
    return HTMLResponse(_TEMPLATES.get_template(template).render(values))
