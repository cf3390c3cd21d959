"""Is the gateway alive, ready, well (specification, section 7)."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, Final

from fastapi import APIRouter, Response

from gateway.api.rest import convert, models
from gateway.api.rest.documented import answers, mirrors
from gateway.api.rest.envelope import failure, success
from gateway.api.rest.route import FacadeRoute
from gateway.domain.models import Policy
from gateway.domain.moment import Moment
from gateway.domain.refusals import Reason, Refusal, RefusedError
from gateway.orders.read import health
from gateway.store.port import Store, StoreUnavailableError, Transaction

_FRESH_SECONDS: Final = 1.0
_WRITE_SECONDS: Final = 3.0


class Readiness:
    """Knows whether the database takes writes: it tries one, at most once a second however often it is asked."""

    def __init__(self, store: Store, touch: Callable[[Transaction, Moment], None]) -> None:
        """`touch` is a write that does no harm."""
        self._store = store
        self._touch = touch
        self._tried_at = -_FRESH_SECONDS
        self._ready = False
        self._trying = asyncio.Lock()

    async def is_ready(self) -> bool:
        """Tell whether the last try, at most a second ago, was written."""
        async with self._trying:
            if time.monotonic() - self._tried_at >= _FRESH_SECONDS:
                self._ready = await self._try()
                self._tried_at = time.monotonic()
            return self._ready

    async def _try(self) -> bool:
        try:
            async with asyncio.timeout(_WRITE_SECONDS):
                await self._store.write(self._touch)
        except (StoreUnavailableError, TimeoutError):
            return False
        return True


def health_routes(store: Store, policy: Policy, readiness: Readiness) -> APIRouter:
    """Make the routes."""
    router = APIRouter(route_class=FacadeRoute, tags=["health"])
    open_answers: dict[int | str, dict[str, Any]] = {200: {"model": models.Envelope[None], "description": "Yes."}}
    not_ready: dict[int | str, dict[str, Any]] = {503: {"model": models.Failure, "description": "No."}}

    @router.get("/livez", summary="Is it alive?", responses=open_answers)
    async def livez() -> Response:
        """Answer while the process serves. Open to all, shows nothing."""
        return success(None)

    @router.get("/readyz", summary="Does it take orders?", responses=open_answers | not_ready)
    async def readyz() -> Response:
        """Answer 200 if the database has just taken a write. Open to all, shows nothing."""
        if await readiness.is_ready():
            return success(None)
        return failure(RefusedError(Refusal(Reason.STORE_UNAVAILABLE, "the database takes no writes")), "readyz")

    @router.get(
        "/health",
        summary="How is it?",
        responses=answers(models.Health),
        openapi_extra=mirrors("ordergateway.v1.OperationsService", "GetHealth"),
    )
    async def get_health() -> Response:
        """Return how the gateway and its workers are. `degraded` is answered with 200 too."""
        return success(convert.health_json(await store.read(health, policy)))

    return router
