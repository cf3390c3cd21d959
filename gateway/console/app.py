"""The console as one application: its routes, who is let in, and how a refusal or a fault looks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final
from urllib.parse import urlencode, urlsplit

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.api.auth.access import ACCESS
from gateway.api.auth.admission import ON_KNOWN
from gateway.api.auth.authenticator import Identity, require
from gateway.api.errors import ERRORS, refusal_of
from gateway.console.actions import ACTIONS, fill_in
from gateway.console.forms import Form, form_of
from gateway.console.messages import LANGUAGES
from gateway.console.pages import bulk, decisions, money, operations, site, task, tasks
from gateway.console.rendering import STATIC, static_file, static_path
from gateway.console.sessions import Session
from gateway.console.visit import (
    ENTRANCE,
    HOME,
    LANGUAGE_COOKIE,
    SESSION_COOKIE,
    Parts,
    Visit,
    go_to,
    render,
    way_back,
)
from gateway.domain.refusals import Reason, Refusal, RefusedError

Page = Callable[[Visit], Awaitable[Response]]

_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_YEAR_SECONDS: Final = 31_536_000

SIGN_IN: Final = f"{HOME}/sign-in"

PAGES: Final[dict[str, Page]] = {
    HOME: decisions.show,
    f"{HOME}/tasks": tasks.show,
    f"{HOME}/tasks/{{task_id}}": task.show,
    f"{HOME}/bulk": bulk.show,
    f"{HOME}/queue": operations.show_queue,
    f"{HOME}/money": money.show,
    f"{HOME}/money/{{budget_id}}": money.show_one,
    f"{HOME}/statement": money.show_statement,
    f"{HOME}/site": site.show,
    f"{HOME}/queries": site.show_queries,
    f"{HOME}/queries/{{query_id}}": site.show_query,
    f"{HOME}/alerts": operations.show_alerts,
    f"{HOME}/callbacks": operations.show_callbacks,
    f"{HOME}/history": operations.show_history,
    f"{HOME}/settings": operations.show_settings,
}
"""The pages, by their paths."""

_log = logging.getLogger(__name__)


def console_app(parts: Parts) -> ASGIApp:
    """Make the application. It expects paths that begin with /console."""
    console = _Console(parts)
    app = Starlette(
        routes=[
            Route(SIGN_IN, _entrance_page, methods=["GET"]),
            Route(SIGN_IN, console.sign_in, methods=["POST"]),
            Route(f"{HOME}/sign-out", console.sign_out, methods=["POST"]),
            Route(f"{HOME}/events", console.events, methods=["GET"]),
            Route(f"{HOME}/language", console.choose_language, methods=["POST"]),
            Route(f"{HOME}/bulk", console.decide, methods=["POST"]),
            Route(f"{HOME}/do/{{action}}", console.act, methods=["POST"]),
            Route(f"{HOME}/static/{{version}}/{{name}}", _static, methods=["GET"]),
            Route(f"{HOME}/statement.csv", console.page(money.download_statement), methods=["GET"]),
            *(Route(path, console.page(page), methods=["GET"]) for path, page in PAGES.items()),
        ],
        exception_handlers={HTTPException: _no_page},
    )
    app.router.redirect_slashes = False

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await app(scope, receive, sending)

    return guarded


class _Console:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def page(self, show: Page) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint of a page: it lets in who is signed in, and tells everybody else how to be."""

        async def endpoint(request: Request) -> Response:
            try:
                session = self._session(request)
                if session is None:
                    return _to_entrance(request) if not _comes_from_elsewhere(request) else _once_more(request)
                return await show(Visit(request, self._parts, session))
            except Exception as error:  # noqa: BLE001 - told on a page
                return _told(request, error)

        return endpoint

    async def sign_in(self, request: Request) -> Response:
        """Open a session for a token."""
        back = ""
        try:
            _same_origin(request)
            form = await form_of(request)
            back = form.one("back")
            cookie = await self._parts.sessions.sign_in(form.one("token"))
            session = self._parts.sessions.find(cookie)
            if session is not None:
                _let_in(session.identity)
        except ClientDisconnect:
            return Response()
        except Exception as error:  # noqa: BLE001 - told on the page
            return _entrance(request, back, _logged(request, error))
        answer = go_to(way_back(back))
        if session is not None and session.ends_at is not None:
            answer.set_cookie(
                SESSION_COOKIE, cookie, path=HOME, httponly=True, samesite="strict", secure=_is_secure(request)
            )
        return answer

    async def sign_out(self, request: Request) -> Response:
        """End the session."""
        try:
            _, _ = await self._form_of(request)
        except Exception as error:  # noqa: BLE001 - told on a page
            return _told(request, error)
        self._parts.sessions.sign_out(request.cookies.get(SESSION_COOKIE))
        answer = go_to(HOME)
        answer.delete_cookie(SESSION_COOKIE, path=HOME, httponly=True, samesite="strict", secure=_is_secure(request))
        return answer

    async def choose_language(self, request: Request) -> Response:
        """Keep in which language somebody reads."""
        try:
            _same_origin(request)
            form = await form_of(request)
        except Exception as error:  # noqa: BLE001 - told on a page
            return _told(request, error)
        answer = go_to(way_back(form.one("back")))
        if form.one("language") in LANGUAGES:
            answer.set_cookie(
                LANGUAGE_COOKIE,
                form.one("language"),
                max_age=_YEAR_SECONDS,
                path=HOME,
                httponly=True,
                samesite="lax",
                secure=_is_secure(request),
            )
        return answer

    async def events(self, request: Request) -> Response:
        """Tell an open page of changes, until its session or the gateway ends."""
        cookie = request.cookies.get(SESSION_COOKIE)
        try:
            session = self._session(request)
            if session is None:
                # No content: an EventSource does not try again.
                return Response(status_code=204)
            call = self._parts.admission.call(session.identity, ENTRANCE)
        except Exception as error:  # noqa: BLE001 - told by its status
            return Response(status_code=_status(_logged(request, error)))

        changes = self._parts.changes

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            try:
                with self._parts.admission.waiting(call), changes.place(session.identity.name):
                    told = changes.stream(lambda: self._parts.sessions.find(cookie) is not None)
                    async with aclosing(told):
                        await StreamingResponse(told, media_type="text/event-stream")(scope, receive, send)
            except RefusedError as error:
                await Response(status_code=_status(error.refusal))(scope, receive, send)

        return _Served(serve)

    async def act(self, request: Request) -> Response:
        """Do what a person has decided: call the contract's method, as any other transport does."""
        action = ACTIONS.get(request.path_params["action"])
        if action is None:
            return _told(request, HTTPException(404))
        try:
            visit, form = await self._form_of(request)
            method = self._parts.methods[action.method]
            call = visit.call(action.method)
        except Exception as error:  # noqa: BLE001 - told on a page
            return _told(request, error)
        back = way_back(form.one("back"))
        try:
            message = method.request_type()
            fill_in(message, action, form)
            await asyncio.shield(asyncio.ensure_future(method.serve(message, call)))
        except Exception as error:  # noqa: BLE001 - told beside the form, as it was filled in
            refusal = _logged(request, error)
            if refusal.reason is Reason.SECOND_PERSON_REQUIRED:
                # The page shows what waits, and for whom.
                return go_to(back)
            return visit.page("refused.html", _status(refusal), action=action, form=form, refusal=refusal, back=back)
        joined = "&" if "?" in back else "?"
        return go_to(back if f"done={action.name}" in back else f"{back}{joined}done={action.name}")

    async def decide(self, request: Request) -> Response:
        """Take one decision about many tasks."""
        try:
            return await bulk.decide(*await self._form_of(request))
        except Exception as error:  # noqa: BLE001 - told on a page
            return _told(request, error)

    def _session(self, request: Request) -> Session | None:
        session = self._parts.sessions.find(request.cookies.get(SESSION_COOKIE))
        if session is not None:
            self._parts.admission.count(session.identity)
            _let_in(session.identity)
            request.scope["state"][ON_KNOWN]()
        return session

    async def _form_of(self, request: Request) -> tuple[Visit, Form]:
        """Read a form that only a page of ours can have sent, of somebody who is signed in."""
        _same_origin(request)
        session = self._session(request)
        if session is None:
            raise RefusedError(Refusal(Reason.UNAUTHENTICATED, "the session has ended; sign in again"))
        form = await form_of(request)
        if form.one("csrf") != session.csrf:
            why = "this form is of another session, or of an older page; go back and load the page again"
            raise RefusedError(Refusal(Reason.PERMISSION_DENIED, why))
        return Visit(request, self._parts, session), form


class _Served(Response):
    """An answer that an application gives."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__()
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _let_in(identity: Identity) -> None:
    require(identity, ACCESS[ENTRANCE], "the console")


def _same_origin(request: Request) -> None:
    """Refuse a form that a page of another site sent."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    origin = request.headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if site not in ("same-origin", "none") or foreign:
        raise RefusedError(Refusal(Reason.PERMISSION_DENIED, "this form was sent by a page of another site"))


def _is_secure(request: Request) -> bool:
    """Tell whether the browser is connected by TLS, with this gateway or with a program in front of it."""
    first, _, _ = request.headers.get("x-forwarded-proto", "").partition(",")
    return "https" in (request.url.scheme, first.strip())


def _comes_from_elsewhere(request: Request) -> bool:
    """Tell whether a link on another site led here: then the browser keeps a SameSite cookie to itself."""
    return request.headers.get("sec-fetch-site") == "cross-site" and SESSION_COOKIE not in request.cookies


def _once_more(request: Request) -> Response:
    """Let the browser ask again, from a page of ours, and so with its session."""
    return HTMLResponse(render(request, "once_more.html"), 200)


def _to_entrance(request: Request) -> Response:
    here = f"{request.url.path}?{request.url.query}".rstrip("?")
    return go_to(f"{SIGN_IN}?{urlencode({'back': here})}")


async def _entrance_page(request: Request) -> Response:
    return _entrance(request, request.query_params.get("back", ""))


def _entrance(request: Request, back: str, refusal: Refusal | None = None) -> Response:
    page = render(request, "sign_in.html", refusal=refusal, back=way_back(back))
    return HTMLResponse(page, 200 if refusal is None else _status(refusal))


def _told(request: Request, error: Exception) -> Response:
    if isinstance(error, ClientDisconnect):
        return Response()
    if isinstance(error, HTTPException):
        return HTMLResponse(render(request, "problem.html", refusal=None, status=error.status_code), error.status_code)
    refusal = _logged(request, error)
    if refusal.reason is Reason.UNAUTHENTICATED:
        return _entrance(request, "", refusal)
    return HTMLResponse(render(request, "problem.html", refusal=refusal, status=_status(refusal)), _status(refusal))


def _logged(request: Request, error: Exception) -> Refusal:
    refusal = refusal_of(error)
    if refusal.reason is Reason.INTERNAL:
        _log.error("%s failed", request.url.path, exc_info=error)
    return refusal


def _status(refusal: Refusal) -> int:
    status = ERRORS[refusal.reason].http
    return 409 if status == 200 else status  # noqa: PLR2004 - what is no success over HTTP


async def _no_page(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return HTMLResponse(render(request, "problem.html", refusal=None, status=status), status)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in STATIC:
        raise HTTPException(404)
    is_current = static_path(name) == request.url.path
    kept = f"public, max-age={_YEAR_SECONDS}, immutable" if is_current else "no-store"
    return Response(static_file(name), 200, {"Cache-Control": kept}, STATIC[name])
