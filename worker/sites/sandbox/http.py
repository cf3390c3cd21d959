"""HTTP with the sandbox shop: one account's session, bounded answers, no redirect followed unasked.

An answer whose head is whole is an answer, whatever becomes of its body: for what cannot be undone the head is judged
first. Nothing here sends a request twice. `post_once` is for what cannot be undone: a connection of its own, closed
after it.
"""

import asyncio
import ssl
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.cookiejar import Cookie
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx

from common.bounded_http import BUDGET, Budget
from worker.sites.answer_body import read_body
from worker.sites.bounded_http import COOKIES_REFUSED, MAX_COOKIES, SiteTransport
from worker.sites.forms import Form
from worker.sites.page_reader import PageReader
from worker.sites.port import LoggedOutError, Page, PreSendCheck, SiteError
from worker.sites.sandbox.pages import read_login_form
from worker.sites.sandbox.settings import origin_of
from worker.sites.shown import is_link

LOGIN_PATH = "/login"
SENDING = "http11.send_request_headers.started"
"""How httpcore calls the moment in which the connection stands and nothing was sent."""
MAX_PAGE_BYTES = 4 * 1024 * 1024
MAX_COOKIE_BYTES = 16 * 1024
"""Of all cookies together, with names, paths and domains."""
ANSWER_TIMEOUTS = 3
"""How many silences of the shop an answer may take in all, however steadily it drips."""
REDIRECT_BODY_SECONDS = 1.0
"""A redirect's body is evidence at most: what has come of it by then is kept."""
REDIRECT = "order_worker.redirect"
SEND_AGAIN = (307, 308)

Fields = Mapping[str, str | list[str]]


@dataclass(frozen=True, slots=True)
class Credentials:
    """The account's login. The default is the account that the sandbox shop opens with."""

    username: str = "buyer@sandbox.example"
    password: str = field(default="sandbox", repr=False)


def credentials_of(account: str) -> Credentials:
    """Return an account's login: each is a login of its own at the shop; the empty one is what the shop opens with."""
    return Credentials(f"{account}@accounts.sandbox.example") if account else Credentials()


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `location` is where a redirect points, as a path of the shop; None where it is no redirect.

    `fault`: what is wrong with an answer whose head is whole, such as a body that breaks off; None where nothing is.
    """

    page: Page
    location: str | None
    fault: SiteError | httpx.HTTPError | None = None

    def sound(self) -> "Answer":
        """Return the answer itself. Raises its fault."""
        if self.fault is not None:
            raise self.fault
        return self


class SandboxHttp:
    """One account's session with the shop at `base_url`, an origin such as `http://127.0.0.1:31115`.

    Logs in by form when it needs a session and has none. A session that the shop has ended is a LoggedOutError for the
    call that meets it; the call after that logs in anew. `timeout_seconds` is for connecting and for each silence of
    the shop; an answer may take three times that in all. Raises ValueError where base_url is no origin.
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
        self.origin = origin_of(base_url)
        self._credentials = credentials
        self._reader = reader
        self._answer_seconds = ANSWER_TIMEOUTS * timeout_seconds
        self._timeout = httpx.Timeout(timeout_seconds, connect=min(timeout_seconds, 10))
        self._max_page_bytes = max_page_bytes
        # Made once: reading the system's authorities takes as long as a whole order. Over http none is needed.
        secure = self.origin.startswith("https:")
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
            transport=SiteTransport(self._tls),
        )

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Answer:
        """One GET as the logged-in account. Raises LoggedOutError, SiteError, OSError or httpx.HTTPError."""
        await self._ensure_session()
        return await self._checked((await self._exchange(self._client, "GET", path, params=params)).sound())

    async def post(self, path: str, fields: Fields) -> Answer:
        """One POST as the logged-in account. Raises as `get` does."""
        await self._ensure_session()
        return await self._checked((await self._exchange(self._client, "POST", path, fields=fields)).sound())

    async def post_once(self, path: str, fields: Fields, pre_send_check: PreSendCheck) -> Answer:
        """One POST on a connection that nothing used before and nothing uses after; it never logs in for it. What is
        wrong with an answer is in its `fault`, for the caller to judge what the head says.

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
        """Give the connections back."""
        await self._client.aclose()

    async def _ensure_session(self) -> None:
        async with self._login_lock:
            if not self._logged_in:
                await self._log_in()

    async def _log_in(self) -> None:
        shown = (await self._exchange(self._client, "GET", LOGIN_PATH)).sound()
        form: Form = await self._reader.read(read_login_form, shown.page)
        login = {"username": self._credentials.username, "password": self._credentials.password}
        answer = (await self._exchange(self._client, "POST", form.action, fields={**form.fields, **login})).sound()
        if answer.location is None or urlsplit(answer.location).path == LOGIN_PATH:
            raise LoggedOutError("the shop refuses to log the account in", page=answer.page)
        self._logged_in = True

    async def _checked(self, answer: Answer) -> Answer:
        """Return the answer, unless it sends the visitor to the login page."""
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
        BUDGET.set(budget := Budget())
        begun = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._answer_seconds):
                response = await client.send(request, stream=True)
        except TimeoutError as error:
            raise SiteError(f"the shop has not answered within {self._answer_seconds:g} s") from error
        budget.for_body(self._max_page_bytes)
        location = response.extensions.get(REDIRECT, response.headers.get("location"))
        left = self._answer_seconds - (asyncio.get_running_loop().time() - begun)
        seconds = left if location is None else min(left, REDIRECT_BODY_SECONDS)
        body, fault = await read_body(response, seconds=seconds, max_bytes=self._max_page_bytes)
        return self._judged(Page(str(request.url), method, response.status_code, body, location), response, fault)

    def _judged(self, page: Page, response: httpx.Response, fault: SiteError | httpx.HTTPError | None) -> Answer:
        """Return the answer with the first thing that is wrong with it. A redirect's body is nobody's to read."""
        coding = response.headers.get("content-encoding", "identity")
        is_redirect = REDIRECT in response.extensions
        location = self.path_of(page) if is_redirect else None
        if too_many := self._too_many_cookies(refused=COOKIES_REFUSED in response.extensions):
            fault = SiteError(too_many, page=page)
        elif is_redirect and page.method == "POST" and page.http_status in SEND_AGAIN:
            again = f"the shop wants a form sent again (HTTP {page.http_status}), which is not done"
            fault = SiteError(again, page=page)
        elif is_redirect:
            elsewhere = f"the shop sends the visitor to another site: {(page.location or '')[:200]!r}"
            fault = SiteError(elsewhere, page=page) if location is None else None
        elif fault is None and coding != "identity":
            fault = SiteError(f"the shop sends a page in a coding that was not asked for: {coding[:50]!r}", page=page)
        return Answer(page, location, fault)

    def _too_many_cookies(self, *, refused: bool) -> str | None:
        """End the session where its cookies are over a limit, and say so: they go with every request."""
        jar = self._client.cookies.jar
        if not refused and len(jar) <= MAX_COOKIES and _size(jar) <= MAX_COOKIE_BYTES:
            return None
        self._client.cookies.clear()
        self._logged_in = False
        return f"the shop sets more than {MAX_COOKIES} cookies or {MAX_COOKIE_BYTES} bytes of cookies"

    def path_of(self, page: Page) -> str | None:
        """Where an answer leads, whatever its status, as a path of the shop; None where to nowhere or elsewhere."""
        try:
            url = urljoin(page.url, page.location or "") if is_link(page.location or "") else ""
        except ValueError:
            url = ""
        return url.removeprefix(self.origin) if url.startswith(self.origin + "/") else None


def _size(cookies: Iterable[Cookie]) -> int:
    return sum(
        len(part or "") for cookie in cookies for part in (cookie.name, cookie.value, cookie.path, cookie.domain)
    )


async def _keep_redirect(response: httpx.Response) -> None:
    """Take a redirect's target out of the client's sight, which makes a request of it before anybody has judged it."""
    if response.has_redirect_location:
        response.extensions[REDIRECT] = response.headers.pop("location")
