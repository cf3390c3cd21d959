"""Requests in Python's own values, and what the answers of several batches come to."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack

from ordergateway.v1 import orders_pb2 as pb

MAX_BATCH: Final = 500
MAX_BATCH_BYTES: Final = 1024 * 1024
"""What the gateway takes in one call, by default; a single order may be larger than that and is then sent alone."""

ENDED: Final = frozenset((pb.TASK_STATUS_SUCCEEDED, pb.TASK_STATUS_FAILED, pb.TASK_STATUS_NEEDS_HUMAN))
"""Where a watch ends."""


class OrderFields(TypedDict, total=False):
    """What an order may have besides task_id, site and intent: fields of SubmitOrderRequest (orders.proto)."""

    callback_url: str
    account: str
    labels: Mapping[str, str]
    max_total_yen: int
    not_before: datetime
    not_after: datetime
    stop_before_submit: bool
    requires_approval: bool


def order(
    task_id: str, site: str, intent: Mapping[str, Any] | str, **fields: Unpack[OrderFields]
) -> pb.SubmitOrderRequest:
    """Make the request of an order.

    `task_id` is your own identifier of it, 1 to 128 of `A-Z a-z 0-9 . _ -`: one task exists for it, for ever. `intent`
    is a JSON object or its text, which is sent as it is. Times are aware. Raises ValueError for a naive time, and
    ValueError or TypeError for an intent that JSON cannot hold.
    """
    request = pb.SubmitOrderRequest(task_id=task_id, site=site, intent_json=_text(intent))
    for name, value in fields.items():
        if isinstance(value, datetime):
            if value.tzinfo is None:
                raise ValueError(f"{name} has no time zone")
            getattr(request, name).FromDatetime(value)
        elif isinstance(value, Mapping):
            request.labels.update(value)
        else:
            setattr(request, name, value)
    return request


def listing(tasks: pb.TaskFilter | None, page_size: int) -> pb.ListOrdersRequest:
    """Make the request of a list. What a gateway of an older contract knows is asked for as it knows it."""
    further = pb.TaskFilter()
    further.CopyFrom(tasks or pb.TaskFilter())
    request = pb.ListOrdersRequest(site=further.site, account=further.account, page_size=page_size)
    further.ClearField("site")
    further.ClearField("account")
    if len(further.statuses) == 1:
        request.status = further.statuses[0]
        further.ClearField("statuses")
    if further.ByteSize():
        request.filter.CopyFrom(further)
    return request


def batches(orders: Iterable[pb.SubmitOrderRequest]) -> Iterator[pb.SubmitOrdersRequest]:
    """Divide orders into requests, none larger than the gateway takes. Raises ValueError for one without a task_id."""
    batch, size = pb.SubmitOrdersRequest(), 0
    for each in orders:
        if not each.task_id:
            raise ValueError("an order has no task_id, so it could not be sent again after a lost answer")
        length = each.ByteSize() + 8
        if batch.orders and (len(batch.orders) == MAX_BATCH or size + length > MAX_BATCH_BYTES):
            yield batch
            batch, size = pb.SubmitOrdersRequest(), 0
        batch.orders.append(each)
        size += length
    if batch.orders:
        yield batch


def counted_on(results: Iterable[pb.SubmitOrdersResult], before: int) -> Iterator[pb.SubmitOrdersResult]:
    """Yield the results of a batch, their places counted on from the `before` orders of the batches before."""
    for result in results:
        if result.HasField("refusal"):
            refusal = result.refusal
            begin = f"orders[{refusal.index}]"
            refusal.index += before
            refusal.field = f"orders[{refusal.index}]" + refusal.field.removeprefix(begin)
        yield result


class Changes:
    """Tells the changes of a task from what only repeats them, over the reconnections of a watch."""

    def __init__(self) -> None:
        self._seen: pb.Task | None = None

    @property
    def have_ended(self) -> bool:
        """True once the task has ended."""
        return self._seen is not None and self._seen.status in ENDED

    def take(self, message: pb.WatchOrderResponse) -> pb.Task | None:
        """Return the message's task if it tells anything new. A lease that is renewed is nothing new."""
        if not message.HasField("task"):
            return None
        essence = pb.Task()
        essence.CopyFrom(message.task)
        essence.ClearField("lease_expires_at")
        essence.ClearField("updated_at")
        if essence == self._seen:
            return None
        self._seen = essence
        return message.task


def _text(intent: Mapping[str, Any] | str) -> str:
    if isinstance(intent, str):
        return intent
    return json.dumps(intent, ensure_ascii=False, allow_nan=False)
