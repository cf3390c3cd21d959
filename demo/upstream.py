"""An upstream: submits over gRPC with the generated client and follows the task until it ends."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import grpc
from ordergateway.v1 import orders_pb2 as pb
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from demo.orders import DemoOrder

ORDER_SECONDS = 60
CALL_SECONDS = 10
BEFORE_END = (pb.TASK_STATUS_QUEUED, pb.TASK_STATUS_LEASED, pb.TASK_STATUS_RUNNING)
BEFORE_CLICK = (pb.ORDER_STATE_CREATED, pb.ORDER_STATE_IN_CART)


@dataclass(frozen=True, slots=True)
class Change:
    """Something that the watch brought: seconds since the submission, what changed, and in words what came with it."""

    seconds: float
    what: str
    words: str


def status_name(status: "pb.TaskStatus.ValueType") -> str:
    """For example `needs_human`."""
    return pb.TaskStatus.Name(status).removeprefix("TASK_STATUS_").lower()


def state_name(state: "pb.OrderState.ValueType") -> str:
    """For example `in_cart`."""
    return pb.OrderState.Name(state).removeprefix("ORDER_STATE_").lower()


def placement_name(placement: "pb.Placement.ValueType") -> str:
    """For example `certain`."""
    return pb.Placement.Name(placement).removeprefix("PLACEMENT_").lower()


class Upstream:
    """One upstream with its token on one channel. Raises grpc.RpcError where the gateway refuses or is not there."""

    def __init__(self, channel: grpc.Channel, token: str) -> None:
        self._orders = OrderServiceStub(channel)
        self._metadata = (("authorization", f"Bearer {token}"),)

    def submit(self, order: DemoOrder) -> pb.SubmitOrderResponse:
        """Files the order under its own task_id; the same call again would change nothing."""
        request = pb.SubmitOrderRequest(task_id=order.task_id, site="sandbox", intent_json=order.intent_json)
        return self._orders.SubmitOrder(request, metadata=self._metadata, timeout=CALL_SECONDS)

    def follow(self, task_id: str, submitted_at: float) -> Iterator[Change]:
        """The changes of a task as they come, until it has ended. `submitted_at` is of time.monotonic."""
        seen: pb.Task | None = None
        watch = self._orders.WatchOrder(
            pb.WatchOrderRequest(task_id=task_id), metadata=self._metadata, timeout=ORDER_SECONDS
        )
        for message in watch:
            if message.HasField("task"):
                seconds = time.monotonic() - submitted_at
                yield from (Change(seconds, what, words) for what, words in differences(seen, message.task))
                seen = message.task

    def task(self, task_id: str) -> pb.Task:
        """The task as it is now."""
        request = pb.GetOrderRequest(task_id=task_id)
        return self._orders.GetOrder(request, metadata=self._metadata, timeout=CALL_SECONDS).task


def differences(before: pb.Task | None, now: pb.Task) -> Iterator[tuple[str, str]]:
    """What is new in a task: its reports and what was added to them, its permit, its status."""
    status = []
    if before is None or before.status != now.status:
        status.append((status_name(now.status), f"held by {now.lease_owner}" if now.HasField("lease_owner") else ""))
    if now.status in BEFORE_END:
        yield from status
    known = {report.state: report for report in before.reports} if before else {}
    changed = [report for report in now.reports if report != known.get(report.state)]
    told = [(report.state, state_name(report.state), news(known.get(report.state), report)) for report in changed]
    if now.HasField("submit_permitted_at") and not (before and before.HasField("submit_permitted_at")):
        yield from ((what, words) for state, what, words in told if state in BEFORE_CLICK)
        yield "permit", "the gateway allows the one click"
        told = [entry for entry in told if entry[0] not in BEFORE_CLICK]
    yield from ((what, words) for _, what, words in told)
    if now.status not in BEFORE_END:
        yield from status


def news(before: pb.Report | None, now: pb.Report) -> str:
    """What a report tells that it did not tell before, for people."""
    words = {
        "site_order_id": f"order {now.site_order_id}",
        "payable_yen": f"{now.payable_yen:,} yen to pay",
        "error_code": f"code {now.error_code}",
        "evidence_ref": f"evidence {now.evidence_ref}",
        "detail": now.detail,
    }
    fields = {field.name: value for field, value in now.ListFields()}
    old = {field.name: value for field, value in before.ListFields()} if before else {}
    return ", ".join(text for name, text in words.items() if name in fields and fields[name] != old.get(name))
