"""What the sites themselves show: account queries, the catalogue, and where it differs from the tasks."""

from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from ordergateway.v1 import catalog_pb2
from starlette.responses import Response

from gateway.account_queries.read import get_query, list_queries
from gateway.api.answers import accepted
from gateway.api.codec.page_tokens import make_page_token, page_token
from gateway.api.offload import checked
from gateway.catalog.read import list_catalog
from gateway.console.visit import CATALOG, QUERIES, Visit
from gateway.domain import fields
from gateway.domain.catalog import CatalogFilter

A_PAGE: Final = 50
MAX_DISCREPANCIES: Final = 100


async def show(visit: Visit) -> Response:
    """Show the catalogue, and what differs."""
    visit.call(CATALOG + "ListCatalogOrders")
    is_on = visit.parts.catalog_policy.interval is not None
    below = page_token(visit.query("page"), ["catalog"])
    found = await visit.parts.store.read(list_catalog, CatalogFilter(), below, A_PAGE)
    return visit.page(
        "site.html",
        is_on=is_on,
        sites=visit.parts.policy.sites,
        orders=found.items,
        discrepancies=await _discrepancies(visit) if is_on else (),
        next_page=make_page_token(found.next_after, ["catalog"]),
        is_first=below is None,
    )


async def _discrepancies(visit: Visit) -> list[dict[str, Any]]:
    """Ask the contract's method: it drops what holds no longer, which a page may not do."""
    path = CATALOG + "ListDiscrepancies"
    request = catalog_pb2.ListDiscrepanciesRequest(page_size=MAX_DISCREPANCIES)
    answer = await visit.parts.methods[path].serve(request, visit.call(path))
    return [
        MessageToDict(found, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
        for found in answer.discrepancies
    ]


async def show_queries(visit: Visit) -> Response:
    """Show a page of account queries."""
    call = visit.call(QUERIES + "ListQueries")
    below = page_token(visit.query("page"), ["queries"])
    async with visit.parts.admission.turn(call):
        found = await visit.parts.store.read(list_queries, None, None, below, A_PAGE)
        return visit.page(
            "queries.html",
            queries=found.items,
            next_page=make_page_token(found.next_after, ["queries"]),
            is_first=below is None,
        )


async def show_query(visit: Visit) -> Response:
    """Show a query with its result."""
    visit.call(QUERIES + "GetQuery")
    query_id = fields.key("query_id", visit.request.path_params["query_id"])
    found = accepted(await visit.parts.store.read(get_query, query_id))
    return await checked(len(found.result_json or ""), lambda: visit.page("query.html", found=found))
