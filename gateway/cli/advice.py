"""What a person can do about a task: the command for each operation that the gateway allows, ready to copy."""

from collections.abc import Iterable, Iterator
from typing import Final

from ordergateway.v1 import operations_pb2, orders_pb2

from gateway.cli.output import span

_COMMANDS: Final = {
    "reclaim": "order-worker reclaim {task} --reason ...   (on the worker's machine)",
    "requeue": "order-gateway requeue {task} --reason ...",
    "withdraw": "order-gateway withdraw {task} --reason ...",
    "cancel": "order-gateway cancel {task} --reason ...",
    "approve": "order-gateway approvals approve {task} --total ... --reason ...   (not by whoever filed it)",
    "deny": "order-gateway approvals deny {task} --reason ...",
    "expire_now": "order-gateway expire {task} --reason ...   (only if its worker is known to be dead)",
}
"""Operations that a person asks for; whatever else is allowed, a worker does."""

_BEFORE: Final = {
    orders_pb2.PLACEMENT_POSSIBLE: "look at the site first; reclaim or requeue only lets a worker verify there, and it "
    "does not click again unless that is safe",
    orders_pb2.PLACEMENT_CERTAIN: "look at the site, and resolve the task to what is there; a worker only verifies",
    orders_pb2.PLACEMENT_IMPOSSIBLE: "nothing was clicked: it can be reclaimed or requeued at once",
}

_FAILED_IN_DOUBT: Final = "a worker ended it as failed, and that is not certain: look at the site"

_CLEARED_BY_HAND: Final = (
    operations_pb2.ALERT_KIND_LATE_REPORT,
    operations_pb2.ALERT_KIND_CONTRADICTING_REPORT,
    operations_pb2.ALERT_KIND_SITE_ORDER_ID_CONFLICT,
)


def commands(allowed: Iterable[str], task_id: str) -> Iterator[str]:
    """Yield the command of each allowed operation that a person can ask for."""
    for name in allowed:
        if name == "resolve":
            yield f"order-gateway resolve {task_id} succeeded|failed --reason ..."
        elif name in _COMMANDS:
            yield _COMMANDS[name].format(task=task_id)


def advice(decision: operations_pb2.Decision) -> Iterator[str]:
    """Yield what can be done about a task that needs a decision, a line each."""
    task = decision.task
    if task.status == orders_pb2.TASK_STATUS_STALE:
        yield f"({_BEFORE[task.placement]})"
    if any(alert.kind == operations_pb2.ALERT_KIND_FAILED_IN_DOUBT for alert in decision.alerts):
        yield f"({_FAILED_IN_DOUBT})"
    yield from commands(decision.allowed, task.task_id)
    if task.placement == orders_pb2.PLACEMENT_IMPOSSIBLE and "resolve" in decision.allowed:
        yield "(to succeeded only with --order-number, or with --although-impossible)"
    if decision.HasField("settles_in"):
        late = "" if task.placement == orders_pb2.PLACEMENT_CERTAIN else ": until then the site may show an order late"
        yield f"(to failed in {span(decision.settles_in)}{late})"
    for alert in decision.alerts:
        if alert.kind in _CLEARED_BY_HAND:
            yield f"order-gateway alerts clear {alert.alert_id} --reason ...   (when it is dealt with)"
