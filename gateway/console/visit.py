"""One request to the console: who looks, in which language, and what becomes of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from common.shown_settings import ShownSetting
from gateway.api.auth.admission import Admission
from gateway.api.call import Call, Method
from gateway.console.actions import ACTIONS
from gateway.console.live import Changes
from gateway.console.messages import LANGUAGES, preferred
from gateway.console.rendering import environment
from gateway.console.sessions import Session, Sessions
from gateway.domain.catalog import CatalogPolicy
from gateway.domain.health import Health
from gateway.domain.models import Actor, Policy
from gateway.domain.refusals import RefusedError
from gateway.store.port import Store

HOME: Final = "/console"
SESSION_COOKIE: Final = "order_gateway_session"
LANGUAGE_COOKIE: Final = "order_gateway_language"

_MAX_BACK_CHARACTERS: Final = 2_000

OPERATIONS: Final = "/ordergateway.v1.OperationsService/"
ORDERS: Final = "/ordergateway.v1.OrderService/"
QUERIES: Final = "/ordergateway.v1.AccountQueryService/"
CATALOG: Final = "/ordergateway.v1.CatalogService/"
ENTRANCE: Final = OPERATIONS + "ListDecisions"
"""Who may call this may sign in."""

NAVIGATION: Final = (
    ("decisions", HOME),
    ("tasks", f"{HOME}/tasks"),
    ("queue", f"{HOME}/queue"),
    ("money", f"{HOME}/money"),
    ("statement", f"{HOME}/statement"),
    ("site", f"{HOME}/site"),
    ("queries", f"{HOME}/queries"),
    ("alerts", f"{HOME}/alerts"),
    ("callbacks", f"{HOME}/callbacks"),
    ("history", f"{HOME}/history"),
    ("settings", f"{HOME}/settings"),
)
"""The pages that the menu names, and where they are."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the console needs of the gateway. `methods`: those of the contract, by path. `look`: at its health.

    `settings`: those in effect, without secrets. `wall_utc` reads the wall clock.
    """

    store: Store
    admission: Admission
    sessions: Sessions
    methods: Mapping[str, Method]
    policy: Policy
    catalog_policy: CatalogPolicy
    changes: Changes
    look: Callable[[], Awaitable[Health]]
    settings: Sequence[ShownSetting]
    wall_utc: Callable[[], str]


@dataclass(slots=True)
class Visit:
    """A request of somebody who is let in. `on_every_page`: what the frame around each page shows."""

    request: Request
    parts: Parts
    session: Session
    on_every_page: Mapping[str, Any] = field(default_factory=dict)

    @property
    def actor(self) -> Actor:
        """Return who acts, as the history names them."""
        return Actor(self.session.identity.name)

    @property
    def language(self) -> str:
        """Return in which language the pages are."""
        return language_of(self.request)

    def query(self, name: str) -> str:
        """Return a parameter of the address; empty where there is none."""
        return self.request.query_params.get(name, "").strip()

    def call(self, path: str) -> Call:
        """Let the visitor call a method of the contract. Raises RefusedError PERMISSION_DENIED."""
        return self.parts.admission.call(self.session.identity, path)

    def may(self, path: str) -> bool:
        """Tell whether the visitor's role may call a method."""
        try:
            self.call(path)
        except RefusedError:
            return False
        return True

    def may_act(self, name: str) -> bool:
        """Tell whether the visitor's role may do what an action does."""
        return self.may(ACTIONS[name].method)

    def page(self, template: str, http_status: int = 200, /, **context: Any) -> Response:
        """Render a page."""
        html = self.render(template, **context)
        return HTMLResponse(html, http_status)

    def render(self, template: str, **context: Any) -> str:
        """Render a template with what every page shows."""
        return render(
            self.request,
            template,
            session=self.session,
            is_open=self.parts.admission.is_open,
            navigation=NAVIGATION,
            actions=ACTIONS,
            may_act=self.may_act,
            done=self.query("done") if self.query("done") in ACTIONS else "",
            **self.on_every_page,
            **context,
        )


def render(request: Request, template: str, **context: Any) -> str:
    """Render a template in the language of a request."""
    path = request.url.path
    here = f"{path}?{request.url.query}" if request.url.query else path
    return (
        environment(language_of(request))
        .get_template(template)
        .render(path=path, here=here[:_MAX_BACK_CHARACTERS], **context)
    )


def language_of(request: Request) -> str:
    """Return the language that was chosen, else the one that the browser asks for."""
    chosen = request.cookies.get(LANGUAGE_COOKIE, "")
    return chosen if chosen in LANGUAGES else preferred(request.headers.get("accept-language", ""))


def way_back(told: str) -> str:
    """Return where a form says that it came from, if that is a page of the console."""
    inside = told == HOME or told.startswith((f"{HOME}/", f"{HOME}?"))
    plain = told.isascii() and told.isprintable() and "\\" not in told and len(told) <= _MAX_BACK_CHARACTERS
    return told if inside and plain else HOME


def go_to(path: str) -> Response:
    """Send the browser on with a GET."""
    return RedirectResponse(path, 303)
