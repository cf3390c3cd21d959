"""HTTP with the sandbox shop: one account's session, bounded answers, no redirect followed unasked.

Nothing here sends a request twice. `post_once` is for what cannot be undone: a connection of its own, closed after it.
"""

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from worker.site.sandbox_pages import read_login_form
from worker.site.seam import LastLook, LoggedOutError, Page, SiteError

LOGIN_PATH = "/login"
SENDING = "http11.send_request_headers.started"
"""How httpcore calls the moment in which the connection stands and nothing was sent."""
MAX_PAGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Credentials:
    """The account's login. The default is the account that the sandbox shop opens with."""

    username: str = "buyer@sandbox.example"
    password: str = field(default="sandbox", repr=False)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `location` is where a redirect points, as a path of the shop; None where it is no redirect."""

    page: Page
    location: str | None


class SandboxHttp:
    """One account's session with the shop at `base_url`, an origin such as `http://127.0.0.1:31115`.

    Logs in by form when it needs a session and has none. A session that the shop has ended is a LoggedOutError for the
    call that meets it; the call after that logs in anew. `timeout_seconds` is for connecting and for each silence of
    the shop. Raises ValueError where base_url is no origin.
    """

    def __init__(
        self,
        base_url: str,
        credentials: Credentials,
        *,
        timeout_seconds: float = 30,
        max_page_bytes: int = MAX_PAGE_BYTES,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
            raise ValueError("the sandbox shop's address must be scheme, host and port")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._credentials = credentials
        self._timeout = httpx.Timeout(timeout_seconds, connect=min(timeout_seconds, 10))
        self._max_page_bytes = max_page_bytes
        # Made once: reading the system's authorities takes as long as a whole order. Over http none is needed.
        secure = parts.scheme == "https"
        self._tls = ssl.create_default_context() if secure else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._client = self._new_client()
        self._logged_in = False
        self._login_lock = asyncio.Lock()

    def _new_client(self, **headers: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.origin,
            headers={"accept-encoding": "identity", "accept-language": "ja", "user-agent": "order-worker", **headers},
            timeout=self._timeout,
            follow_redirects=False,
            trust_env=False,
            transport=httpx.AsyncHTTPTransport(verify=self._tls, http1=True, http2=False, retries=0, trust_env=False),
        )

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Answer:
        """One GET as the logged-in account. Raises LoggedOutError, SiteError, OSError or httpx.HTTPError."""
        await self._ensure_session()
        return await self._checked(await self._exchange(self._client, "GET", path, params=params))

    async def post(self, path: str, fields: Mapping[str, str | list[str]]) -> Answer:
        """One POST as the logged-in account. Raises as `get` does."""
        await self._ensure_session()
        return await self._checked(await self._exchange(self._client, "POST", path, fields=fields))

    async def post_once(self, path: str, fields: Mapping[str, str | list[str]], last_look: LastLook) -> Answer:
        """One POST on a connection that nothing used before and nothing uses after; it never logs in for it.

        Raises LoggedOutError before anything is sent where there is no session, and what `last_look` raises once the
        connection stands; else as `get` does.
        """
        if not self._logged_in:
            raise LoggedOutError
        async with self._new_client(connection="close") as fresh:
            fresh.cookies = self._client.cookies
            answer = await self._exchange(fresh, "POST", path, fields=fields, last_look=last_look)
        return await self._checked(answer)

    def absolute(self, href: str) -> str | None:
        """`href` as an absolute URL of the shop; None where it leads elsewhere."""
        url = urljoin(self.origin + "/", href)
        return url if url.startswith(self.origin + "/") else None

    async def close(self) -> None:
        """Gives the connections back."""
        await self._client.aclose()

    async def _ensure_session(self) -> None:
        async with self._login_lock:
            if not self._logged_in:
                await self._log_in()

    async def _log_in(self) -> None:
        shown = await self._exchange(self._client, "GET", LOGIN_PATH)
        fields = read_login_form(shown.page)
        fields |= {"username": self._credentials.username, "password": self._credentials.password}
        answer = await self._exchange(self._client, "POST", LOGIN_PATH, fields=fields)
        if answer.location is None or urlsplit(answer.location).path == LOGIN_PATH:
            raise LoggedOutError("the shop refuses to log the account in", page=answer.page)
        self._logged_in = True

    async def _checked(self, answer: Answer) -> Answer:
        """The answer, unless it sends the visitor to the login page."""
        if answer.location is None or urlsplit(answer.location).path != LOGIN_PATH:
            return answer
        self._logged_in = False
        self._client.cookies.clear()
        page = answer.page
        with suppress(SiteError, OSError, httpx.HTTPError):
            page = (await self._exchange(self._client, "GET", LOGIN_PATH)).page
        raise LoggedOutError(page=page)

    async def _exchange(
        self,
        client: httpx.AsyncClient,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        fields: Mapping[str, str | list[str]] | None = None,
        last_look: LastLook | None = None,
    ) -> Answer:
        async def trace(event: str, _about: dict[str, Any]) -> None:
            if event == SENDING and last_look is not None:
                last_look()

        request = client.build_request(method, path, params=params, data=fields, extensions={"trace": trace})
        response = await client.send(request, stream=True)
        try:
            body = bytearray()
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > self._max_page_bytes:
                    raise SiteError(f"the shop's answer is larger than {self._max_page_bytes} bytes")
        finally:
            await response.aclose()
        page = Page(str(request.url), method, response.status_code, bytes(body))
        if not response.has_redirect_location:
            return Answer(page, None)
        url = self.absolute(response.headers["location"])
        if url is None:
            raise SiteError("the shop sends the visitor to another site", page=page)
        return Answer(page, url.removeprefix(self.origin))
