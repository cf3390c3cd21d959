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

from worker.sites.forms import Form
from worker.sites.page_reader import PageReader
from worker.sites.port import LoggedOutError, Page, PreSendCheck, SiteError
from worker.sites.sandbox.pages import read_login_form
from worker.sites.shown import is_link

LOGIN_PATH = "/login"
SENDING = "http11.send_request_headers.started"
"""How httpcore calls the moment in which the connection stands and nothing was sent."""
MAX_PAGE_BYTES = 4 * 1024 * 1024
MAX_PAGE_PIECES = 20_000
"""Each piece of a page costs tens of microseconds, however small: a page of 4 MiB could come in as many pieces."""
MAX_COOKIE_BYTES = 16 * 1024
REDIRECT = "order_worker.redirect"
_SEND_AGAIN = (307, 308)

Fields = Mapping[str, str | list[str]]


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
        reader: PageReader,
        *,
        timeout_seconds: float = 30,
        max_page_bytes: int = MAX_PAGE_BYTES,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/") or parts.query:
            raise ValueError("the sandbox shop's address must be scheme, host and port")
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self._credentials = credentials
        self._reader = reader
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
            event_hooks={"response": [_keep_redirect]},
            trust_env=False,
            transport=httpx.AsyncHTTPTransport(verify=self._tls, http1=True, http2=False, retries=0, trust_env=False),
        )

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Answer:
        """One GET as the logged-in account. Raises LoggedOutError, SiteError, OSError or httpx.HTTPError."""
        await self._ensure_session()
        return await self._checked(await self._exchange(self._client, "GET", path, params=params))

    async def post(self, path: str, fields: Fields) -> Answer:
        """One POST as the logged-in account. Raises as `get` does."""
        await self._ensure_session()
        return await self._checked(await self._exchange(self._client, "POST", path, fields=fields))

    async def post_once(self, path: str, fields: Fields, pre_send_check: PreSendCheck) -> Answer:
        """One POST on a connection that nothing used before and nothing uses after; it never logs in for it.

        Raises LoggedOutError before anything is sent where there is no session, and what `pre_send_check` raises once
        the connection stands; else as `get` does.
        """
        if not self._logged_in:
            raise LoggedOutError
        async with self._new_client(connection="close") as fresh:
            fresh.cookies = self._client.cookies
            answer = await self._exchange(fresh, "POST", path, fields=fields, pre_send_check=pre_send_check)
        return await self._checked(answer)

    async def close(self) -> None:
        """Gives the connections back."""
        await self._client.aclose()

    async def _ensure_session(self) -> None:
        async with self._login_lock:
            if not self._logged_in:
                await self._log_in()

    async def _log_in(self) -> None:
        shown = await self._exchange(self._client, "GET", LOGIN_PATH)
        form: Form = await self._reader.read(read_login_form, shown.page)
        login = {"username": self._credentials.username, "password": self._credentials.password}
        answer = await self._exchange(self._client, "POST", form.action, fields={**form.fields, **login})
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
        fields: Fields | None = None,
        pre_send_check: PreSendCheck | None = None,
    ) -> Answer:
        async def trace(event: str, _about: dict[str, Any]) -> None:
            if event == SENDING and pre_send_check is not None:
                pre_send_check()

        request = client.build_request(method, path, params=params, data=fields, extensions={"trace": trace})
        response = await client.send(request, stream=True)
        try:
            body, pieces = bytearray(), 0
            async for piece in response.aiter_raw():
                body += piece
                pieces += 1
                if len(body) > self._max_page_bytes:
                    raise SiteError(f"the shop's answer is larger than {self._max_page_bytes} bytes")
                if pieces > MAX_PAGE_PIECES:
                    raise SiteError(f"the shop's answer comes in more than {MAX_PAGE_PIECES} pieces")
        finally:
            await response.aclose()
        page = Page(str(request.url), method, response.status_code, bytes(body))
        self._bound_cookies(page)
        if (coding := response.headers.get("content-encoding", "identity")) != "identity":
            raise SiteError(f"the shop sends a page in a coding that was not asked for: {coding[:50]!r}", page=page)
        location = response.extensions.get(REDIRECT)
        if location is None:
            return Answer(page, None)
        if method == "POST" and response.status_code in _SEND_AGAIN:
            raise SiteError(
                f"the shop wants a form sent again (HTTP {response.status_code}), which is not done", page=page
            )
        return Answer(page, self._path_of(location, page))

    def _bound_cookies(self, page: Page) -> None:
        """Ends the session where its cookies are over the limit: they go with every request. Raises SiteError."""
        if sum(len(cookie.name) + len(cookie.value or "") for cookie in self._client.cookies.jar) > MAX_COOKIE_BYTES:
            self._client.cookies.clear()
            self._logged_in = False
            raise SiteError(f"the shop sets more than {MAX_COOKIE_BYTES} bytes of cookies", page=page)

    def _path_of(self, location: str, page: Page) -> str:
        """Where a redirect leads, as a path of the shop. Raises SiteError where it leads anywhere else."""
        try:
            url = urljoin(page.url, location) if is_link(location) else ""
        except ValueError:
            url = ""
        if not url.startswith(self.origin + "/"):
            raise SiteError(f"the shop sends the visitor to another site: {location[:200]!r}", page=page)
        return url.removeprefix(self.origin)


async def _keep_redirect(response: httpx.Response) -> None:
    """Takes a redirect's target out of the client's sight, which makes a request of it before anybody has judged it."""
    if response.has_redirect_location:
        response.extensions[REDIRECT] = response.headers.pop("location")
