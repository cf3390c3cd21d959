"""CatalogService: what the site itself shows; catalog.proto says what each method does and refuses."""

from ordergateway.v1 import catalog_pb2

from common.target import Target
from gateway.api.answers import accepted
from gateway.api.call import Call
from gateway.api.codec import catalog as codec
from gateway.api.codec.account_queries import query_status_to
from gateway.api.codec.page_tokens import make_page_token, page_token
from gateway.catalog.read import list_catalog
from gateway.catalog.reconcile import list_discrepancies
from gateway.catalog.rounds import Rounds
from gateway.domain import fields
from gateway.domain.catalog import CatalogFilter, CatalogPolicy
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
        wanted = self._filter(request)
        filters = ["catalog", *_named(wanted)]
        below = page_token(request.page_token, filters)
        page = await self._store.read(list_catalog, wanted, below, fields.page_size("page_size", request.page_size))
        return catalog_pb2.ListCatalogOrdersResponse(
            orders=[codec.catalog_order_message(order) for order in page.items],
            next_page_token=make_page_token(page.next_after, filters),
        )

    async def discover(self, request: catalog_pb2.DiscoverRequest, call: Call) -> catalog_pb2.DiscoverResponse:
        """File a round now."""
        require_catalog(self._policy)
        site = fields.site("site", request.site or self._policy.sites[0], self._policy.sites)
        target = Target(site, fields.account("account", request.account))
        filed = accepted(await self._store.write(self._rounds.ask, target, call.identity.name))
        return catalog_pb2.DiscoverResponse(
            query_id=filed.query_id, status=query_status_to(filed.status), created=filed.created
        )

    async def list_discrepancies(
        self, request: catalog_pb2.ListDiscrepanciesRequest, call: Call
    ) -> catalog_pb2.ListDiscrepanciesResponse:
        """Return one page of what differs."""
        require_catalog(self._policy)
        wanted = self._filter(request)
        kind = codec.discrepancy_kind(request.kind)
        filters = ["discrepancies", kind or "", *_named(wanted)]
        below = page_token(request.page_token, filters)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.write(list_discrepancies, kind, wanted, below, size)
        return catalog_pb2.ListDiscrepanciesResponse(
            discrepancies=[codec.discrepancy_message(found) for found in page.items],
            next_page_token=make_page_token(page.next_after, filters),
        )

    def _filter(
        self, request: catalog_pb2.ListCatalogOrdersRequest | catalog_pb2.ListDiscrepanciesRequest
    ) -> CatalogFilter:
        site = fields.site("site", request.site, self._policy.sites) if request.site else None
        return CatalogFilter(site, fields.account("account", request.account) or None)


def _named(wanted: CatalogFilter) -> list[str]:
    """Name a filter in a page token; an account only where there is one, as before there were any."""
    return [wanted.site or "", *([wanted.account] if wanted.account else [])]


def require_catalog(policy: CatalogPolicy) -> None:
    """Raise RefusedError FEATURE_OFF where the catalogue is switched off."""
    if policy.interval is None:
        why = "the order catalogue is switched off: set RAKUTEN_CATALOG_INTERVAL_SECONDS to how often it shall look"
        raise RefusedError(Refusal(Reason.FEATURE_OFF, why))
