"""CatalogService: what the site itself shows; catalog.proto says what each method does and refuses."""

from ordergateway.v1 import catalog_pb2

from gateway.api.call import Call
from gateway.api.codec import catalog as codec
from gateway.api.codec.account_queries import query_status_to
from gateway.api.codec.page_tokens import make_page_token, page_token
from gateway.catalog.read import list_catalog
from gateway.catalog.reconcile import list_discrepancies
from gateway.catalog.rounds import Rounds
from gateway.domain import fields
from gateway.domain.catalog import CatalogPolicy
from gateway.domain.refusals import Reason, Refusal, RefusedError
from gateway.store.port import Store


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
            orders=[codec.catalog_order_message(order) for order in page.items],
            next_page_token=make_page_token(page.next_after, filters),
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
        kind = codec.discrepancy_kind(request.kind)
        filters = ["discrepancies", kind or "", site or ""]
        below = page_token(request.page_token, filters)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.write(list_discrepancies, kind, site, below, size)
        return catalog_pb2.ListDiscrepanciesResponse(
            discrepancies=[codec.discrepancy_message(found) for found in page.items],
            next_page_token=make_page_token(page.next_after, filters),
        )

    def _site(self, name: str) -> str | None:
        return fields.site("site", name, self._policy.sites) if name else None


def require_catalog(policy: CatalogPolicy) -> None:
    """Raise RefusedError FEATURE_OFF where the catalogue is switched off."""
    if policy.interval is None:
        why = "the order catalogue is switched off: set RAKUTEN_CATALOG_INTERVAL_SECONDS to how often it shall look"
        raise RefusedError(Refusal(Reason.FEATURE_OFF, why))
