"""The order catalogue: what the site itself shows."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from common.target import Target
from gateway.api.answers import accepted
from gateway.api.rest import query_convert, query_models
from gateway.api.rest.documented import answers, mirrors
from gateway.api.rest.envelope import success
from gateway.api.rest.parameters import AccountFilter, Limit, Offset
from gateway.api.rest.route import FacadeRoute, call_of
from gateway.api.rest.slices import answer_page
from gateway.api.services.catalog import require_catalog
from gateway.catalog.read import slice_catalog
from gateway.catalog.reconcile import slice_discrepancies
from gateway.catalog.rounds import Rounds
from gateway.domain import fields
from gateway.domain.catalog import CatalogFilter, CatalogPolicy, DiscrepancyKind
from gateway.store.port import Store

_SERVICE = "ordergateway.v1.CatalogService"


def catalog_routes(store: Store, policy: CatalogPolicy, rounds: Rounds) -> APIRouter:
    """Make the routes."""
    router = APIRouter(prefix="/api/account/orders", route_class=FacadeRoute, tags=["catalogue"])

    @router.get(
        "",
        summary="List the orders that the site shows",
        responses=answers(query_models.CatalogList, 501),
        openapi_extra=mirrors(_SERVICE, "ListCatalogOrders"),
    )
    async def list_orders(
        site: Annotated[str | None, Query(description="Only orders of this site.")] = None,
        account: AccountFilter = None,
        limit: Limit = fields.DEFAULT_PAGE_SIZE,
        offset: Offset = 0,
    ) -> Response:
        """List orders, latest seen first. 501 where the catalogue is switched off."""
        require_catalog(policy)
        checked = None if site is None else fields.site("site", site, policy.sites)
        found = await store.read(slice_catalog, CatalogFilter(checked, account), offset, limit)
        return await answer_page(query_convert.catalog_order_json, found.items, found.total, limit, offset)

    @router.post(
        "/discovery",
        summary="Look at the site now",
        responses=answers(query_models.SubmittedQuery, 413, 501),
        openapi_extra=mirrors(_SERVICE, "Discover"),
    )
    async def discover(request: Request, body: query_models.Discover | None = None) -> Response:
        """File a round of discovery, or answer the one in flight with created=false."""
        require_catalog(policy)
        told = body or query_models.Discover()
        site = policy.sites[0] if told.site is None else fields.site("site", told.site, policy.sites)
        target = Target(site, fields.account("account", told.account or ""))
        filed = accepted(await store.write(rounds.ask, target, call_of(request).identity.name))
        return success(query_convert.query_submitted_json(filed))

    @router.get(
        "/discrepancies",
        summary="List where the site and the tasks differ",
        responses=answers(query_models.DiscrepancyList, 501),
        openapi_extra=mirrors(_SERVICE, "ListDiscrepancies"),
    )
    async def list_discrepancies(
        kind: Annotated[DiscrepancyKind | None, Query(description="Only of this kind.")] = None,
        site: Annotated[str | None, Query(description="Only of this site.")] = None,
        account: AccountFilter = None,
        limit: Limit = fields.DEFAULT_PAGE_SIZE,
        offset: Offset = 0,
    ) -> Response:
        """List what differs now, newest first, for a person to look at. 501 where the catalogue is switched off."""
        require_catalog(policy)
        checked = None if site is None else fields.site("site", site, policy.sites)
        found = await store.write(slice_discrepancies, kind, CatalogFilter(checked, account), offset, limit)
        return await answer_page(query_convert.discrepancy_json, found.items, found.total, limit, offset)

    return router
