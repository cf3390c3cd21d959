"""The order catalogue between the contract's messages and the domain's values."""

from ordergateway.v1 import catalog_pb2

from gateway.api.codec.orders import order_state_to
from gateway.api.codec.times import timestamp
from gateway.domain.catalog import CatalogOrder, Discrepancy, DiscrepancyKind
from gateway.domain.refusals import invalid

_KIND = {kind: catalog_pb2.DiscrepancyKind.Value(f"DISCREPANCY_KIND_{kind.name}") for kind in DiscrepancyKind}
_KIND_BACK = {int(number): kind for kind, number in _KIND.items()}


def discrepancy_kind(number: int) -> DiscrepancyKind | None:
    """Check a kind; UNSPECIFIED is None. Raises RefusedError INVALID_FIELD."""
    if number and number not in _KIND_BACK:
        raise invalid("kind", f"is {number}, which is no kind")
    return _KIND_BACK.get(number)


def catalog_order_message(order: CatalogOrder) -> catalog_pb2.CatalogOrder:
    """Write an order of the catalogue."""
    return catalog_pb2.CatalogOrder(
        site=order.site,
        account=order.account,
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


def discrepancy_message(found: Discrepancy) -> catalog_pb2.Discrepancy:
    """Write one difference between the site and the tasks."""
    return catalog_pb2.Discrepancy(
        kind=_KIND[found.kind],
        site=found.site,
        account=found.account,
        order_number=found.order_number,
        task_id=found.task_id,
        task_state=order_state_to(found.task_state),
        site_state=order_state_to(found.site_state),
        explanation=found.explanation,
        found_at=timestamp(found.found_at),
    )
