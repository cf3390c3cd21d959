"""Figures for Prometheus at /metrics, for whoever may see the gateway's health."""

from collections.abc import Awaitable, Callable

from fastapi import APIRouter, Response

from gateway.api.rest.documented import mirrors
from gateway.api.rest.route import FacadeRoute


def metrics_routes(page: Callable[[], Awaitable[bytes]], content_type: str) -> APIRouter:
    """Make the route; `page` writes the metrics in the form that `content_type` names."""
    router = APIRouter(route_class=FacadeRoute)

    @router.get(
        "/metrics", include_in_schema=False, openapi_extra=mirrors("ordergateway.v1.OperationsService", "GetHealth")
    )
    async def metrics() -> Response:
        return Response(await page(), headers={"Cache-Control": "no-store"}, media_type=content_type)

    return router
