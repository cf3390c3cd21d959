"""What is this gateway (docs/protocol.md#versions)."""

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from gateway.api.rest.documented import answers, mirrors
from gateway.api.rest.envelope import success
from gateway.api.rest.route import FacadeRoute
from gateway.domain.contract_version import CONTRACT_VERSION
from gateway.store.gateways import VERSION


class Info(BaseModel):
    """What this gateway is."""

    version: str = Field(description="Version of the program, for people.", examples=[VERSION])
    contract_version: str = Field(
        description="MAJOR.MINOR; within one major version a higher minor one only adds.", examples=[CONTRACT_VERSION]
    )


def info_routes() -> APIRouter:
    """Make the route."""
    router = APIRouter(route_class=FacadeRoute, tags=["health"])

    @router.get(
        "/api/info",
        summary="Which contract does it speak?",
        responses=answers(Info),
        openapi_extra=mirrors("ordergateway.v1.OperationsService", "GetInfo"),
    )
    async def get_info() -> Response:
        """Ask before relying on a field that an older gateway ignores; one older than 1.1 answers 404."""
        return success({"version": VERSION, "contract_version": CONTRACT_VERSION})

    return router
