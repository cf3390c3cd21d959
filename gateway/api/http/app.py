"""The one ASGI application of the HTTP port: hands each request to Connect or REST, within limits, and logs it.

The log line holds method, path, status and time: no query, no header, no body, so no token ever gets there.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.auth.admission import ON_KNOWN, Admission
from gateway.api.http.bodies import Bodies
from gateway.api.http.protocol import MAX_HEADER_BYTES
from gateway.api.rest.envelope import failure, problem
from gateway.request_id import HEADER, begin_request

CONSOLE: Final = "/console"
"""Where the web console is."""

BODY_SECONDS: Final = 30.0
"""How long a client may take to send its body."""

_ONCE: Final = frozenset(
    {
        b"content-encoding",
        b"content-type",
        b"connect-protocol-version",
        b"connect-timeout-ms",
        b"expect",
        b"grpc-encoding",
        b"grpc-timeout",
        b"host",
        b"origin",
        b"sec-fetch-site",
        b"traceparent",
        HEADER.encode(),
    }
)
"""What is read here and may stand once in a request: of two, the program in front may have read the other one."""

_PIECE_BYTES: Final = 64 * 1024

_PROBES: Final = frozenset({"/livez", "/readyz", "/metrics"})
_LONGEST_PATH_LOGGED: Final = 200
_LOOPBACK_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_NOT_STARTED: Final = 499

_log = logging.getLogger("gateway.access")


class HttpApp:
    """Dispatches by path. Where no token is configured, a request that a foreign web page made is refused."""

    def __init__(self, rest: ASGIApp, connect: Mapping[str, ASGIApp], console: ASGIApp, admission: Admission) -> None:
        """`connect`: applications by the first part of their paths. `console`: of `/console` and what is below it."""
        self._rest = rest
        self._console = console
        self._connect = connect
        self._admission = admission
        self._bodies = Bodies()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        status = _NOT_STARTED
        body = self._bodies.counted(receive)

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                body.release()
                message = {**message, "headers": [*message["headers"], named]}
            await _send_in_pieces(message, send)

        headers: dict[bytes, bytes] = dict(scope["headers"])
        named = HEADER.encode(), begin_request(headers.get(HEADER.encode(), b"").decode("ascii", "replace")).encode()
        try:
            answer = self._refusal(scope, headers)
            if answer is not None:
                await answer(scope, receive, noting)
            else:
                if self._admission.knows(headers.get(b"authorization")):
                    scope["state"][ON_KNOWN]()
                await self._serve(scope, body.receive, noting)
        except Exception as error:
            if status != _NOT_STARTED:
                raise
            await failure(error, scope["path"])(scope, receive, noting)
        finally:
            body.release()
            level = logging.DEBUG if scope["path"] in _PROBES else logging.INFO
            path = scope["raw_path"][:_LONGEST_PATH_LOGGED].decode("ascii", "replace")
            took = (time.perf_counter() - started) * 1000
            _log.log(level, "%s %s %d %.0f ms", scope["method"], path, status, took)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        connect = self._connect_app(scope)
        if scope["path"] == CONSOLE or scope["path"].startswith(f"{CONSOLE}/"):
            await self._console(scope, _timely(receive), send)
        elif connect is None:
            await self._rest(scope, receive, send)
        else:
            await connect(scope, _timely(receive), send)

    def _connect_app(self, scope: Scope) -> ASGIApp | None:
        return self._connect.get(scope["path"].rpartition("/")[0])

    def _refusal(self, scope: Scope, headers: Mapping[bytes, bytes]) -> Response | None:
        """Refuse what no application below can answer well."""
        if scope["http_version"] not in ("1.0", "1.1"):
            return problem(400, "HTTP/1.1 is spoken here", {"Connection": "close"})
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEADER_BYTES:
            return problem(431, "the headers are too large", {"Connection": "close"})
        if len(headers) != len(scope["headers"]):
            counts = Counter(name for name, _ in scope["headers"])
            for name in _ONCE:
                if counts[name] > 1:
                    return problem(400, f"the header {name.decode()} must stand once", {"Connection": "close"})
        if scope["method"] == "CONNECT":
            # Whoever sent it may take for a tunnel what follows on the connection.
            return problem(405, "this is no proxy", {"Connection": "close"})
        if headers.get(b"expect", b"100-continue").lower() != b"100-continue":
            return problem(417, "nothing but 100-continue can be expected here", {"Connection": "close"})
        if b"%2f" in scope["raw_path"].lower():
            return problem(404, "there is no such path: a slash must be written as one, not as %2F")
        if scope["method"] == "GET" and self._connect_app(scope) and _repeats_a_parameter(scope["query_string"]):
            return problem(400, "a parameter stands more than once in the query")
        content_type = headers.get(b"content-type", b"")
        if content_type.startswith(b"application/grpc") and not content_type.startswith(b"application/grpc-web"):
            return problem(415, "gRPC is served on its own port; here are REST, Connect and gRPC-Web")
        if not all(value.isascii() for value in headers.values()):
            return problem(400, "a header holds characters beyond ASCII")
        if self._admission.is_open and _is_foreign(headers) and not _is_a_link_followed(scope, headers):
            return problem(403, "without a token, requests of other web sites are refused")
        return None


async def _send_in_pieces(message: Message, send: Send) -> None:
    """Send a body so that no more of it lies in the connection's buffer than the client is about to read."""
    body = message.get("body", b"")
    last = max(0, len(body) - 1) // _PIECE_BYTES * _PIECE_BYTES
    for begin in range(0, last, _PIECE_BYTES):
        await send({**message, "body": body[begin : begin + _PIECE_BYTES], "more_body": True})
    await send({**message, "body": body[last:]} if last else message)


def _repeats_a_parameter(query: bytes) -> bool:
    names = [name for name, _ in parse_qsl(query.decode("latin-1"), keep_blank_values=True)]
    return len(names) != len(set(names))


def _timely(receive: Receive) -> Receive:
    """Make a body that does not arrive in time look like a client that has gone."""
    due = asyncio.get_running_loop().time() + BODY_SECONDS
    arrived = False

    async def received() -> Message:
        nonlocal arrived
        if arrived:
            return await receive()
        try:
            async with asyncio.timeout_at(due):
                message = await receive()
        except TimeoutError:
            return {"type": "http.disconnect"}
        arrived = not message.get("more_body", False)
        return message

    return received


def _is_foreign(headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a web page of another origin made the request, be it under a name that it points at this machine."""
    if headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
        return True
    host = headers.get(b"host", b"").decode()
    if _name(f"//{host}") not in _LOOPBACK_NAMES:
        return True
    origin = headers.get(b"origin")
    return origin is not None and urlsplit(origin.decode()).netloc != host


def _is_a_link_followed(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a person has followed a link to a page of the console, as the one in an alert: it changes nothing,
    and the page where the link stands cannot read what comes.
    """
    is_page = scope["method"] == "GET" and scope["path"].startswith("/console")
    is_navigation = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == (b"navigate", b"document")
    host = headers.get(b"host", b"").decode()
    return is_page and is_navigation and _name(f"//{host}") in _LOOPBACK_NAMES


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
