"""How a route is told in OpenAPI: its answers, and the contract's method that it mirrors."""

from typing import Any, Final

from gateway.api.rest.models import Envelope, Failure
from gateway.api.rest.route import MIRRORS

_ALWAYS: Final = (401, 403, 422, 429, 500, 503)
_WORDS: Final = {
    400: "Not JSON, or not UTF-8.",
    401: "No token, or one that is not valid.",
    403: "The token's role may not do this.",
    404: "It does not exist (6001, 6005).",
    408: "The body did not arrive in time.",
    409: "The lease is invalid (6002, 6006), or the status does not allow it (6003).",
    413: "The body is too large.",
    422: "A value is wrong; `msg` names it.",
    429: "Too many calls or waiters at once; see `Retry-After`.",
    500: "A fault; the gateway's log says more.",
    501: "Not offered by this gateway.",
    503: "The database cannot do this now, or the gateway is stopping; send it again later.",
}

_FAILURE: Final = {"application/json": {"schema": {"$ref": f"#/components/schemas/{Failure.__name__}"}}}
"""Named by hand: FastAPI would make a model of each refusal of each route, a third of a gateway's start."""


def answers(data: Any, *refusals: int, waits: bool = False) -> dict[int | str, dict[str, Any]]:
    """Document the answer 200 with `data`, the refusals that every route has, and `refusals`.

    A route that takes a body (413 is among its refusals) also answers 400 and 408. `waits`: the refusal 6004 comes with
    200 too.
    """
    statuses = {*_ALWAYS, *refusals} | ({400, 408} if 413 in refusals else set())  # noqa: PLR2004 - an HTTP status
    told: dict[int | str, dict[str, Any]] = {200: {"model": Envelope[data], "description": "Done."}}
    if waits:
        told[200] = {"model": Envelope[data] | Failure, "description": "Done, or 6004: another task is in execution."}
    for status in sorted(statuses):
        told[status] = {"description": _WORDS[status], "content": _FAILURE}
    return told


def mirrors(service: str, method: str) -> dict[str, Any]:
    """Name the contract's method that a route mirrors: whoever may call it may call the route."""
    return {MIRRORS: f"/{service}/{method}"}
