"""What every page of the shop shares: the request as a visit, rendering, bounded bodies, and faults around a step."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import Receive, Scope, Send

from sandbox_shop.catalogue import SHOP_NAME
from sandbox_shop.faults import Fault, FaultKind
from sandbox_shop.orders import JST
from sandbox_shop.shop import Shop

SESSION_COOKIE = "sandbox_session"
TRANSPORT_EXTENSION = "sandbox_shop.transport"
MAX_BODY_BYTES = 64 * 1024

_templates = Environment(
    loader=PackageLoader("sandbox_shop"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters["yen"] = lambda amount: f"{amount:,}円"
_templates.filters["jst"] = lambda moment: f"{moment.astimezone(JST):%Y/%m/%d %H:%M}"
_templates.globals["shop_name"] = SHOP_NAME


class BodyTooLargeError(Exception):
    """The request's body is larger than the shop reads."""


async def bounded_body(request: Request) -> bytes:
    """Return the request's body, at most 64 KiB. Raises BodyTooLargeError, ClientDisconnect."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BODY_BYTES:
            raise BodyTooLargeError
    return bytes(body)


class Form:
    """A form as sent: urlencoded, several values a field possible."""

    def __init__(self, body: bytes) -> None:
        self.body = body
        text = body.decode("utf-8", errors="replace")
        self._fields = parse_qs(text, keep_blank_values=True, max_num_fields=100)

    def one(self, name: str, default: str = "") -> str:
        """Return the field's first value."""
        return self._fields.get(name, [default])[0]

    def every(self, name: str) -> tuple[str, ...]:
        """All values of the field."""
        return tuple(self._fields.get(name, ()))

    def number(self, name: str, default: int) -> int:
        """Return the field as a whole number of at most six digits, else `default`."""
        text = self.one(name)
        return int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else default  # noqa: PLR2004


@dataclass(slots=True)
class Visit:
    """One request to the shop. `account` is who is logged in; `missing` are the blocks that the page shall lack."""

    request: Request
    shop: Shop
    account: str | None
    form: Form
    missing: frozenset[str] = frozenset()

    @property
    def base_url(self) -> str:
        """Scheme, host and port as the visitor sees them, without a slash."""
        return str(self.request.base_url).rstrip("/")

    def query(self, name: str, default: str = "") -> str:
        """Return a parameter of the URL."""
        return self.request.query_params.get(name, default)

    def page(self, template: str, status: int = 200, **context: Any) -> Response:
        """Render a page."""
        html = _templates.get_template(template).render(
            account=self.account, missing=self.missing, path=self.request.url.path, **context
        )
        return HTMLResponse(html, status_code=status, headers={"cache-control": "no-store"})

    def go_to(self, path: str) -> Response:
        """Send the visitor on with a GET."""
        return RedirectResponse(path, status_code=303)

    def to_login(self) -> Response:
        """Send the visitor to the login page."""
        return RedirectResponse("/login", status_code=302)


Handler = Callable[[Visit], Awaitable[Response]]


class NoAnswer(Response):
    """Ends the connection without an answer: reset (RST), closed (FIN), or left hanging until the client goes."""

    def __init__(self, kind: FaultKind, shop: Shop) -> None:
        super().__init__()
        self._kind = kind
        self._shop = shop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send nothing and return once the connection is gone."""
        transport: asyncio.Transport = scope["extensions"][TRANSPORT_EXTENSION]
        gone = asyncio.ensure_future(_disconnected(receive))
        closing = asyncio.ensure_future(self._shop.closing.wait())
        try:
            if self._kind is FaultKind.HANG:
                await asyncio.wait({gone, closing}, return_when=asyncio.FIRST_COMPLETED)
            if self._kind is FaultKind.RESET:
                linger_zero = struct.pack("ii", 1, 0)
                transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_zero)
            transport.abort()
            await gone
        finally:
            closing.cancel()
            gone.cancel()


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def step(
    shop: Shop, name: str, handler: Handler, *, needs_login: bool = False
) -> Callable[[Request], Awaitable[Response]]:
    """Make the endpoint of a step: it counts requests, lets an armed fault strike before or after, asks for a login."""

    async def endpoint(request: Request) -> Response:
        shop.count_request(name)
        fault = shop.faults.take(name)
        try:
            form = Form(await bounded_body(request))
        except (BodyTooLargeError, ValueError):
            return Response("the form is too large", 413)
        except ClientDisconnect:
            return Response()
        if fault and not fault.after and (answer := await _strike(fault, shop)):
            return answer
        if fault and fault.kind is FaultKind.LOGGED_OUT:
            shop.end_sessions()
        account = shop.account_of(request.cookies.get(SESSION_COOKIE))
        missing = fault.blocks if fault and fault.kind is FaultKind.REDESIGN else frozenset[str]()
        visit = Visit(request, shop, account, form, missing)
        response = visit.to_login() if needs_login and account is None else await handler(visit)
        if fault and fault.after and (answer := await _strike(fault, shop)):
            return answer
        return response

    return endpoint


async def _strike(fault: Fault, shop: Shop) -> Response | None:
    """Return what the client gets in place of the page; None where the page comes after all."""
    if fault.kind is FaultKind.SLOW:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(shop.closing.wait(), fault.seconds)
        return None
    if fault.kind is FaultKind.ERROR:
        html = _templates.get_template("error.html").render(account=None, missing=frozenset(), path="")
        return HTMLResponse(html, status_code=500)
    if fault.kind in (FaultKind.RESET, FaultKind.LOST, FaultKind.HANG):
        return NoAnswer(fault.kind, shop)
    return None
