"""`order-gateway health`."""

from collections.abc import Iterator
from typing import Any, Final

import typer
from ordergateway.v1 import budgets_pb2, operations_pb2, orders_pb2
from rich.text import Text

from common.output import print_json
from common.tables import print_fields
from common.target import Target
from gateway.cli.client import Client, connected
from gateway.cli.options import GatewayOption, JsonOption
from gateway.cli.output import as_json, span, when, word
from gateway.spreadsheets.words import name_of

_COUNTED: Final = 200
"""Up to how many tasks and alerts `health` counts, one page each."""
_SHOWN_APART: Final = (
    operations_pb2.HEALTH_PROBLEM_KIND_WORKER_OFFLINE,
    operations_pb2.HEALTH_PROBLEM_KIND_TASK_UNCLAIMED,
    operations_pb2.HEALTH_PROBLEM_KIND_DECISION_WAITING,
    operations_pb2.HEALTH_PROBLEM_KIND_ALERT_STANDING,
)
"""Problems that have lines of their own, which say more."""


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(health)


def health(gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """Say how the gateway and its workers are, and how much waits for a person.

    Ends with 0 whenever the gateway answers, be it ok or degraded.
    """
    with connected(gateway) as client:
        found = client.call(client.operations.GetHealth, operations_pb2.GetHealthRequest())
        waiting = [] if as_json_ else list(_waiting_for_a_person(client))
    if as_json_:
        print_json(as_json(found))
        return
    print_fields(
        (
            ("gateway", word(operations_pb2.HealthStatus, found.status)),
            *waiting,
            *(("problem", problem.message) for problem in found.problems if problem.kind not in _SHOWN_APART),
            *(("serves", _gateway(gateway)) for gateway in found.gateways),
            ("queued", str(found.queued_count)),
            *((("held for approval", str(found.held_for_approval_count)),) if found.held_for_approval_count else ()),
            ("queued queries", str(found.queued_query_count)),
            *((f"{name_of(orders_pb2.TaskStatus, task.status)}", task.task_id) for task in found.active_tasks),
            *(
                (
                    "worker",
                    f"{worker.worker_id}, heard of {span(worker.last_seen_ago)} ago{', offline' * worker.offline}",
                )
                for worker in found.workers
            ),
            *(("waits too long", _waits(task)) for task in found.stale_queued_tasks),
            *(("budget", _budget(budget)) for budget in found.budgets),
            *(("paused", f"{pause.site or 'all sites'}: {pause.reason}") for pause in found.pauses),
        )
    )


def _gateway(gateway: operations_pb2.Gateway) -> str:
    told = f"{gateway.name or gateway.gateway_id} {gateway.version}".strip()
    if gateway.gone:
        return f"{told}, gone: not heard of for {span(gateway.last_seen_ago)}"
    told += f", since {when(gateway, 'started_at')}, {gateway.waiting_count} waiting"
    return f"{told}{', leads' * gateway.leads}{', answers' * gateway.answers}"


def _waits(task: operations_pb2.QueuedTask) -> str:
    unserved = f", no worker serves {Target(task.site, task.account)}" if task.unserved else ""
    return f"{task.task_id}, {span(task.age)}{unserved}"


def _budget(budget: budgets_pb2.Budget) -> str:
    left = f"{budget.budget_id}: {budget.left_yen} of {budget.limit_yen} yen left"
    return f"{left} until {when(budget, 'renews_at')}"


def _waiting_for_a_person(client: Client) -> Iterator[tuple[str, Text]]:
    """Yield what `decisions` and `alerts` would show, as counts."""
    tasks = []
    for status in (orders_pb2.TASK_STATUS_STALE, orders_pb2.TASK_STATUS_NEEDS_HUMAN):
        request = orders_pb2.ListOrdersRequest(status=status)
        if count := _count(client.pages(client.orders.ListOrders, request, "tasks", _COUNTED)):
            tasks.append(f"{count} {name_of(orders_pb2.TaskStatus, status)}")
    if tasks:
        yield "to decide", Text(f"{', '.join(tasks)}; see `order-gateway decisions`", style="yellow")
    standing = operations_pb2.ListAlertsRequest()
    if count := _count(client.pages(client.operations.ListAlerts, standing, "alerts", _COUNTED)):
        yield "alerts", Text(f"{count} standing; see `order-gateway alerts`", style="yellow")


def _count(found: list[Any]) -> str:
    if not found:
        return ""
    return f"{_COUNTED} or more" if len(found) >= _COUNTED else str(len(found))
