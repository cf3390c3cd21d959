"""The facade as one application: its routes, its own answers to unknown paths and methods, its OpenAPI page."""

import base64
import binascii
from collections.abc import Callable, Sequence
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Final

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import sole_authorization
from gateway.api.rest.envelope import failure, problem
from gateway.api.rest.route import MIRRORS
from gateway.domain.json_writing import dump

_DESCRIPTION: Final = """\
The documented JSON contract of order-gateway. Every answer is an envelope: `success`, `msg`, `data`, `code` (0, 6001 to
6006, or the HTTP status). Send `Authorization: Bearer <token>`. All times are RFC 3339 in UTC. A client that can use
gRPC or Connect should: see proto/ordergateway/v1."""

_PAGE_POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
_PAGES: Final = {
    "/docs": ("docs.html", "text/html"),
    "/docs/docs.js": ("docs.js", "text/javascript"),
    "/docs/docs.css": ("docs.css", "text/css"),
}
_BASIC: Final = "basic "


def rest_app(routers: Sequence[APIRouter], admission: Admission, max_body_bytes: int, site: str) -> FastAPI:
    """Make the application. The examples of its document name `site`, so that they can be sent as they stand."""
    app = FastAPI(
        title="order-gateway",
        version=version("order-gateway"),
        description=_DESCRIPTION,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        generate_unique_id_function=_operation_id,
        exception_handlers={HTTPException: _refuse_path},
    )
    app.state.admission = admission
    app.state.max_body_bytes = max_body_bytes
    for router in routers:
        app.include_router(router)
    # Made on first demand: it takes longer than all the rest of the start.
    document = cache(lambda: dump(openapi(app, site)).encode())

    @app.get("/openapi.json", include_in_schema=False)
    async def openapi_json(request: Request) -> Response:
        return _for_browsers(request, lambda: Response(document(), media_type="application/json"))

    def add_page(path: str, name: str, media_type: str) -> None:
        content = files("gateway.api.rest").joinpath("pages", name).read_bytes()

        @app.get(path, include_in_schema=False)
        async def page(request: Request) -> Response:
            headers = {"Content-Security-Policy": _PAGE_POLICY, "X-Content-Type-Options": "nosniff"}
            return _for_browsers(request, lambda: Response(content, 200, headers, media_type))

    for path, (name, media_type) in _PAGES.items():
        add_page(path, name, media_type)
    return app


def openapi(app: FastAPI, site: str) -> dict[str, Any]:
    """Return the OpenAPI document of the documented contract."""
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
    )
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    for path in ("/livez", "/readyz"):
        document["paths"][path]["get"]["security"] = []
    for schema in document["components"]["schemas"].values():
        if "examples" in schema.get("properties", {}).get("site", {}):
            schema["properties"]["site"]["examples"] = [site]
        for example in schema.get("examples", ()):
            for each in (example, *example.get("orders", ())):
                if "site" in each:
                    each["site"] = site
    return document


def _operation_id(route: APIRoute) -> str:
    """Name an operation like the contract's method that it mirrors."""
    mirrored: str = (route.openapi_extra or {}).get(MIRRORS, route.name)
    return mirrored.rpartition("/")[2]


def _for_browsers(request: Request, page: Callable[[], Response]) -> Response:
    """Answer with a page to whoever has any token. A browser asks for it and sends it as a Basic password.

    Basic is taken here alone: a browser adds it by itself, also to requests that another site made it send.
    """
    admission: Admission = request.app.state.admission
    try:
        admission.identify(_bearer(sole_authorization(request.headers.getlist("authorization"))))
    except Exception as error:  # noqa: BLE001 - told to the caller
        answer = failure(error, request.url.path)
        if "www-authenticate" in answer.headers:
            # A header of its own: a browser reads one challenge a line.
            answer.headers.append("www-authenticate", 'Basic realm="order-gateway: any name, a token as password"')
        return answer
    return page()


def _bearer(authorization: str | None) -> str | None:
    if authorization is None or authorization[: len(_BASIC)].lower() != _BASIC:
        return authorization
    try:
        pair = base64.b64decode(authorization[len(_BASIC) :], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return authorization
    return f"Bearer {pair.partition(':')[2]}"


async def _refuse_path(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 404:  # noqa: PLR2004 - an HTTP status
        return problem(404, "there is nothing at this path; /docs, to who has a token, shows what there is")
    if isinstance(error, HTTPException) and error.status_code == 405:  # noqa: PLR2004 - an HTTP status
        return problem(405, "this path does not take this method", error.headers)
    return failure(error, request.url.path)
