"""Searches for tasks, between the contract's messages and the domain's values; and what a page token is bound to.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

import json

from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import orders_pb2

from gateway.api.codec.orders import task_status
from gateway.api.codec.page_tokens import make_page_token, page_position
from gateway.api.codec.times import datetime_of
from gateway.domain import fields
from gateway.domain.instant import utc_text
from gateway.domain.models import Policy
from gateway.domain.refusals import invalid
from gateway.domain.search import Position, TaskSearch, utc_of


def list_search(request: orders_pb2.ListOrdersRequest, policy: Policy) -> TaskSearch:
    """Check which tasks a list shows."""
    told = orders_pb2.TaskFilter()
    told.CopyFrom(request.filter)
    for name in ("site", "account"):
        value = getattr(request, name)
        if value and getattr(told, name):
            raise invalid(f"filter.{name}", f"must not be set beside {name}")
        if value:
            setattr(told, name, value)
    if request.status and told.statuses:
        raise invalid("filter.statuses", "must not be set beside status")
    if request.status:
        told.statuses.append(request.status)
    return task_search(told, policy, "" if not request.HasField("filter") else "filter.", request)


def task_search(
    told: orders_pb2.TaskFilter,
    policy: Policy,
    path: str,
    beside: orders_pb2.ListOrdersRequest | None = None,
) -> TaskSearch:
    """Check a filter that stands at `path` of a request; fields that stand `beside` it are named without the path."""

    def at(name: str, plain: str = "") -> str:
        stands_beside = beside is not None and bool(getattr(beside, plain or name, None))
        return (plain or name) if stands_beside else path + name

    def time(name: str) -> str | None:
        message: Timestamp = getattr(told, name)
        return utc_text(datetime_of(path + name, message)) if told.HasField(name) else None  # type: ignore[arg-type]

    if told.order not in orders_pb2.TaskOrder.values():
        raise invalid(f"{path}order", f"is {told.order}, which is no order of a list")
    statuses = {task_status(at("statuses", "status"), number) for number in told.statuses}
    if None in statuses:
        raise invalid(f"{path}statuses", "must not hold the unspecified status")
    return TaskSearch(
        statuses=tuple(sorted(status for status in statuses if status is not None)),
        site=fields.site(at("site"), told.site, policy.sites) if told.site else None,
        account=fields.account(at("account"), told.account) or None,
        labels=label_pairs(f"{path}labels", dict(told.labels)),
        site_order_id=fields.site_order_id(f"{path}site_order_id", told.site_order_id or None),
        created_from=time("created_from"),
        created_to=time("created_to"),
        updated_from=time("updated_from"),
        updated_to=time("updated_to"),
        needs_decision=told.needs_decision,
        held_for_approval=told.held_for_approval,
        task_id_prefix=fields.part_of_key(f"{path}task_id_prefix", told.task_id_prefix),
        task_id_contains=fields.part_of_key(f"{path}task_id_contains", told.task_id_contains),
        oldest_first=told.order == orders_pb2.TASK_ORDER_OLDEST_FIRST,
    )


def label_pairs(field: str, values: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Check labels that are searched for."""
    fields.labels(field, values)
    return tuple(sorted(values.items()))


def search_position(page_token: str, wanted: TaskSearch) -> Position | None:
    """Read a page token of the same search; empty is the first page."""
    position = page_position(page_token, _bound_to(wanted), 2 if wanted.by_update else 1)
    if position is not None and wanted.by_update:
        try:
            utc_of(position[0])
        except OverflowError:
            raise invalid("page_token", "must be next_page_token of a page; start without one") from None
    return position


def make_search_token(position: Position | None, wanted: TaskSearch) -> str:
    """Write a page token; no further page is the empty text."""
    return make_page_token(position, _bound_to(wanted))


def _bound_to(wanted: TaskSearch) -> list[str]:
    """Return what a page token is made for: what there was first stands as it did then, so that old tokens lead on."""
    bound_to = [",".join(wanted.statuses), wanted.site or "", *([wanted.account] if wanted.account else [])]
    further = {
        "labels": json.dumps(wanted.labels) if wanted.labels else "",
        "site_order_id": wanted.site_order_id,
        "created_from": wanted.created_from,
        "created_to": wanted.created_to,
        "updated_from": wanted.updated_from,
        "updated_to": wanted.updated_to,
        "needs_decision": wanted.needs_decision,
        "held_for_approval": wanted.held_for_approval,
        "task_id_prefix": wanted.task_id_prefix,
        "task_id_contains": wanted.task_id_contains,
        "oldest_first": wanted.oldest_first,
    }
    return [*bound_to, *(f"{name}={value}" for name, value in further.items() if value)]
