"""Is the gateway alive, ready, well (docs/specification.md#health)."""

from typing import Any

from fastapi import APIRouter, Response

from gateway.api.rest import convert
from gateway.api.rest.documented import answers, mirrors
from gateway.api.rest.envelope import failure, success
from gateway.api.rest.health_models import Health
from gateway.api.rest.models import Envelope, Failure
from gateway.api.rest.route import FacadeRoute
from gateway.domain.refusals import Reason, Refusal, RefusedError
from gateway.health import HealthCheck


def health_routes(check: HealthCheck) -> APIRouter:
    """Make the routes."""
    router = APIRouter(route_class=FacadeRoute, tags=["health"])
    open_answers: dict[int | str, dict[str, Any]] = {200: {"model": Envelope[None], "description": "Yes."}}
    not_ready: dict[int | str, dict[str, Any]] = {503: {"model": Failure, "description": "No."}}

    @router.get("/livez", summary="Is it alive?", responses=open_answers)
    async def livez() -> Response:
        """Answer while the process serves. Open to all, shows nothing."""
        return success(None)

    @router.get("/readyz", summary="Does it take orders?", responses=open_answers | not_ready)
    async def readyz() -> Response:
        """Answer 200 if the database has just taken a write. Open to all, shows nothing."""
        if await check.readiness.is_ready():
            return success(None)
        return failure(RefusedError(Refusal(Reason.STORE_UNAVAILABLE, "the database takes no writes")), "readyz")

    @router.get(
        "/health",
        summary="How is it?",
        responses=answers(Health),
        openapi_extra=mirrors("ordergateway.v1.OperationsService", "GetHealth"),
    )
    async def get_health() -> Response:
        """Return how the gateway and its workers are. `degraded` is answered with 200 too."""
        return success(convert.health_json(await check.look()))

    return router
