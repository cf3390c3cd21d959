"""A bounded HTTP transport for a shop, whose cookies are bounded too, before the client parses them.

As browsers do it: overlong cookies and those of RFC 2965 are dropped.
"""

import httpx

from common.bounded_http import BoundedTransport

MAX_COOKIES = 50
MAX_COOKIE_BYTES = 4 * 1024

COOKIES_REFUSED = "order_worker.cookies_refused"
"""Extension of a response: True where it set more cookies than are taken; then none of them is."""


class SiteTransport(BoundedTransport):
    """The bounded transport, of whose answers no more cookies are taken than a session needs."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """One exchange; see `httpx.AsyncBaseTransport`."""
        response = await super().handle_async_request(request)
        headers = response.headers.raw
        cookies = [
            header for header in headers if _name(header) == b"set-cookie" and len(header[1]) <= MAX_COOKIE_BYTES
        ]
        if len(cookies) > MAX_COOKIES:
            cookies = []
            response.extensions[COOKIES_REFUSED] = True
        others = [header for header in headers if _name(header) not in (b"set-cookie", b"set-cookie2")]
        response.headers = httpx.Headers([*others, *cookies])
        return response


def _name(header: tuple[bytes, bytes]) -> bytes:
    return header[0].lower()
