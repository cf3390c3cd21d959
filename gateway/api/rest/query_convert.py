"""From the domain's account queries and catalogue to the documented JSON shapes."""

from typing import Any

from gateway.domain.account_queries import Query, QueryLease, QuerySubmitted
from gateway.domain.catalog import CatalogOrder, Discrepancy
from gateway.domain.json_writing import JsonText


def query_json(query: Query, result_json: str | None = None) -> dict[str, Any]:
    """Write a query; lists leave the result out."""
    return {
        "query_id": query.query_id,
        "site": query.site,
        "account": query.account,
        "kind": query.kind,
        "params": JsonText(query.params_json),
        "status": query.status,
        "lease_owner": query.lease_owner,
        "lease_expires_at": query.lease_expires_at,
        "attempts": query.attempts,
        "created_at": query.created_at,
        "updated_at": query.updated_at,
        "completed_at": query.completed_at,
        "result": None if result_json is None else JsonText(result_json),
        "error": None if query.error is None else {"code": query.error.code, "message": query.error.message},
    }


def query_submitted_json(done: QuerySubmitted) -> dict[str, Any]:
    """Write what a submission came to."""
    differs = ["params" if name == "params_json" else name for name in done.differs]
    return {"query_id": done.query_id, "status": done.status, "created": done.created, "differs": differs}


def query_lease_json(lease: QueryLease) -> dict[str, Any]:
    """Write a query lease."""
    return {
        "query_id": lease.query_id,
        "site": lease.site,
        "account": lease.account,
        "kind": lease.kind,
        "params": JsonText(lease.params_json),
        "lease_expires_at": lease.lease_expires_at,
        "attempt": lease.attempt,
    }


def catalog_order_json(order: CatalogOrder) -> dict[str, Any]:
    """Write an order of the catalogue."""
    return {
        "site": order.site,
        "account": order.account,
        "order_number": order.order_number,
        "shop_id": order.shop_id,
        "shop_name": order.shop_name,
        "order_date": order.order_date,
        "delivery_status": order.delivery_status,
        "order_state": order.order_state,
        "discovered_at": order.discovered_at,
        "detail_fetched_at": order.detail_fetched_at,
        "last_seen_at": order.last_seen_at,
    }


def discrepancy_json(found: Discrepancy) -> dict[str, Any]:
    """Write one difference between the site and the tasks."""
    return {
        "kind": found.kind,
        "site": found.site,
        "account": found.account,
        "order_number": found.order_number,
        "task_id": found.task_id or None,
        "task_state": found.task_state,
        "site_state": found.site_state,
        "explanation": found.explanation,
        "found_at": found.found_at,
    }
