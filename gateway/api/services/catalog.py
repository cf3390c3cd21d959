"""CatalogService: what the site itself shows; catalog.proto says what each method does and refuses."""

from ordergateway.v1 import catalog_pb2

from gateway.api.call import Call
from gateway.api.codec.messages import order_state_to, timestamp
from gateway.api.codec.query_messages import query_status_to
from gateway.api.codec.requests import make_page_token, page_token
from gateway.catalog.read import list_catalog
from gateway.catalog.reconcile import list_discrepancies
from gateway.catalog.rounds import Rounds
from gateway.domain import fields
from gateway.domain.catalog import CatalogOrder, CatalogPolicy, Discrepancy, DiscrepancyKind
from gateway.domain.refusals import Reason, Refusal, RefusedError, invalid
from gateway.store.port import Store

_KIND = {kind: catalog_pb2.DiscrepancyKind.Value(f"DISCREPANCY_KIND_{kind.name}") for kind in DiscrepancyKind}
_KIND_BACK = {int(number): kind for kind, number in _KIND.items()}


class CatalogService:
    """The methods of the service, free of any transport."""

    def __init__(self, store: Store, policy: CatalogPolicy, rounds: Rounds) -> None:
        self._store = store
        self._policy = policy
        self._rounds = rounds

    async def list_catalog_orders(
        self, request: catalog_pb2.ListCatalogOrdersRequest, call: Call
    ) -> catalog_pb2.ListCatalogOrdersResponse:
        """Return one page of the catalogue."""
        require_catalog(self._policy)
        site = self._site(request.site)
        filters = ["catalog", site or ""]
        below = page_token(request.page_token, filters)
        page = await self._store.read(list_catalog, site, below, fields.page_size("page_size", request.page_size))
        return catalog_pb2.ListCatalogOrdersResponse(
            orders=[_order(order) for order in page.orders], next_page_token=make_page_token(page.next_seen, filters)
        )

    async def discover(self, request: catalog_pb2.DiscoverRequest, call: Call) -> catalog_pb2.DiscoverResponse:
        """File a round now."""
        require_catalog(self._policy)
        site = self._site(request.site) or self._policy.sites[0]
        filed = await self._store.write(self._rounds.discover, site)
        return catalog_pb2.DiscoverResponse(
            query_id=filed.query_id, status=query_status_to(filed.status), created=filed.created
        )

    async def list_discrepancies(
        self, request: catalog_pb2.ListDiscrepanciesRequest, call: Call
    ) -> catalog_pb2.ListDiscrepanciesResponse:
        """Return one page of what differs."""
        require_catalog(self._policy)
        site = self._site(request.site)
        if request.kind and request.kind not in _KIND_BACK:
            raise invalid("kind", f"is {request.kind}, which is no kind")
        kind = _KIND_BACK.get(request.kind)
        filters = ["discrepancies", kind or "", site or ""]
        below = page_token(request.page_token, filters)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.write(list_discrepancies, kind, site, below, size)
        return catalog_pb2.ListDiscrepanciesResponse(
            discrepancies=[_discrepancy(found) for found in page.discrepancies],
            next_page_token=make_page_token(page.next_row, filters),
        )

    def _site(self, name: str) -> str | None:
        return fields.site("site", name, self._policy.sites) if name else None


def require_catalog(policy: CatalogPolicy) -> None:
    """Raise RefusedError FEATURE_OFF where the catalogue is switched off."""
    if policy.interval is None:
        why = "the order catalogue is switched off: set RAKUTEN_CATALOG_INTERVAL_SECONDS to how often it shall look"
        raise RefusedError(Refusal(Reason.FEATURE_OFF, why))


def _order(order: CatalogOrder) -> catalog_pb2.CatalogOrder:
    return catalog_pb2.CatalogOrder(
        site=order.site,
        order_number=order.order_number,
        shop_id=order.shop_id,
        shop_name=order.shop_name,
        order_date=timestamp(order.order_date),
        delivery_status=order.delivery_status,
        order_state=order_state_to(order.order_state),
        discovered_at=timestamp(order.discovered_at),
        detail_fetched_at=timestamp(order.detail_fetched_at),
        last_seen_at=timestamp(order.last_seen_at),
    )


def _discrepancy(found: Discrepancy) -> catalog_pb2.Discrepancy:
    return catalog_pb2.Discrepancy(
        kind=_KIND[found.kind],
        site=found.site,
        order_number=found.order_number,
        task_id=found.task_id,
        task_state=order_state_to(found.task_state),
        site_state=order_state_to(found.site_state),
        explanation=found.explanation,
        found_at=timestamp(found.found_at),
    )
