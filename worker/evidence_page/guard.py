"""Who is answered: a browser on this machine that was given the address with its key; and under which headers.

Everybody on the machine reaches a port of 127.0.0.1, and a page of any site can send a browser there. The key, which
only the person's terminal has shown, keeps out the first; the `Host` header, which a name that was bent to 127.0.0.1
does not match, keeps out the second.
"""

import hmac
from collections.abc import Iterable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

OWN_POLICY: Final = (
    "default-src 'none'; style-src 'self'; img-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
INERT_POLICY: Final = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
"""Of evidence: no script, no form, no other window, no request; its own styles and the images that it holds."""

_HEADERS: Final = {
    "Content-Security-Policy": OWN_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-DNS-Prefetch-Control": "off",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=()",
    "Cache-Control": "no-store",
    # Who has no key keeps no connection, by the drops of a body either.
    "Connection": "close",
}


class Guard:
    """Stands before the pages, and lets in nothing but a GET of them with the key."""

    def __init__(self, app: ASGIApp, key: str, hosts: Iterable[str]) -> None:
        """`key`: the first part of every path. `hosts`: as the browser may call this server, with the port."""
        self._app = app
        self._key = key.encode()
        self._hosts = frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await (self._refusal(scope) or self._app)(scope, receive, sending)

    def _refusal(self, scope: Scope) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        if not self._hosts.issuperset(headers.getlist("host") or [""]):
            return PlainTextResponse("this server is not called so", 421)
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            return PlainTextResponse("a page of another site has sent you here: open the address yourself", 403)
        key = scope["path"].split("/", 2)[1] if scope["path"].startswith("/") else ""
        if not hmac.compare_digest(key.encode(), self._key):
            return PlainTextResponse("nothing is here: open the whole address that the command has printed", 404)
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("this can only be looked at", 405, {"Allow": "GET, HEAD"})
        return None
