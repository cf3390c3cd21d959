"""The console as a person uses it, without a browser: pages are fetched, forms are found on them and sent."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from selectolax.lexbor import LexborHTMLParser, LexborNode

from tests.gateway.support.in_process import RunningGateway, running_gateway

OPERATOR = "alice=the-token-of-alice"
SECRET = "the-token-of-alice"


@dataclass
class Visitor:
    """Somebody with a browser that keeps cookies."""

    client: httpx.AsyncClient

    async def get(self, path: str = "/console", **headers: str) -> httpx.Response:
        """A page, whatever its status."""
        return await self.client.get(path, headers=headers)

    async def page(self, path: str = "/console") -> LexborHTMLParser:
        """A page that must be there."""
        answer = await self.get(path)
        assert answer.status_code == 200, answer.text
        return LexborHTMLParser(answer.text)

    async def sign_in(self, token: str = SECRET, back: str = "/console") -> httpx.Response:
        return await self.client.post("/console/sign-in", data={"token": token, "back": back})

    async def send(self, page: LexborHTMLParser, action: str, **fields: str) -> httpx.Response:
        """Fill in the form of an action on a page, and send it."""
        found = page.css_first(f"form[action='/console/do/{action}']")
        assert found is not None, f"there is no form for {action}"
        return await self.client.post(f"/console/do/{action}", data=hidden_fields(found) | fields)

    async def act(self, path: str, action: str, **fields: str) -> None:
        """Do something from a page; it must be done."""
        answer = await self.send(await self.page(path), action, **fields)
        assert answer.status_code == 200, text_of(LexborHTMLParser(answer.text))

    async def csrf(self) -> str:
        """What the forms of the session bring."""
        found = (await self.page()).css_first("input[name=csrf]")
        assert found is not None
        return str(found.attributes["value"])


def hidden_fields(form: LexborNode) -> dict[str, str]:
    """What a form brings along."""
    inputs = form.css("input[type=hidden]")
    return {str(each.attributes["name"]): str(each.attributes["value"]) for each in inputs}


def text_of(page: LexborHTMLParser, selector: str = "main") -> str:
    """What a person reads."""
    found = page.css_first(selector)
    assert found is not None, selector
    return re.sub(r"\s+", " ", found.text()).strip()


def offered(page: LexborHTMLParser) -> list[str]:
    """The actions that have a form on a page."""
    return [str(form.attributes["action"]).rpartition("/")[2] for form in page.css("form[action^='/console/do/']")]


@asynccontextmanager
async def visitor(gateway: RunningGateway, **headers: str) -> AsyncIterator[Visitor]:
    address = f"http://127.0.0.1:{gateway.http_port}"
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=30, follow_redirects=True) as client:
        yield Visitor(client)


@asynccontextmanager
async def console(folder: Path, **settings: Any) -> AsyncIterator[tuple[RunningGateway, Visitor]]:
    """A gateway, and an operator who is signed in to its console."""
    wanted: dict[str, Any] = {"operator_token": (OPERATOR,), "api_token": ("the-token",)} | settings
    async with running_gateway(folder, token="the-token", **wanted) as gateway, visitor(gateway) as alice:
        answer = await alice.sign_in()
        assert answer.status_code == 200, answer.text
        yield gateway, alice
