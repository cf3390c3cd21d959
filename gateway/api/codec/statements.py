"""The statement of a day, between the contract's messages and the domain's values.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

from collections.abc import Iterable

from ordergateway.v1 import statements_pb2

from gateway.api.codec.orders import order_state_to, task_status_to
from gateway.api.codec.times import timestamp
from gateway.domain import fields
from gateway.domain.statements import Spending, StatementDay, StatementLine

_SPENDING = {spending: statements_pb2.Spending.Value(f"SPENDING_{spending.name}") for spending in Spending}


def statement_day(day: str, time_zone: str, default_zone: str) -> StatementDay:
    """Check which day is asked for; an empty time zone is the default."""
    return StatementDay(fields.day("day", day), fields.time_zone("time_zone", time_zone) if time_zone else default_zone)


def line_message(line: StatementLine) -> statements_pb2.StatementLine:
    """Write a line."""
    task = line.task
    return statements_pb2.StatementLine(
        task_id=task.task_id,
        site=task.site,
        account=task.account,
        filed_at=timestamp(task.created_at),
        filed_by=task.submitted_by or "",
        status=task_status_to(task.status),
        latest_state=order_state_to(task.latest_state),
        spending=_SPENDING[line.spending],
        yen=line.yen,
        site_order_ids=line.site_order_ids,
        decisions=[
            statements_pb2.StatementDecision(
                kind=event.kind, decided_by=event.actor, decided_at=timestamp(event.occurred_at), reason=event.reason
            )
            for event in line.decisions
        ],
    )


def totals_message(lines: Iterable[StatementLine]) -> statements_pb2.StatementTotals:
    """Add lines up."""
    totals = statements_pb2.StatementTotals()
    for line in lines:
        totals.tasks += 1
        match line.spending:
            case Spending.ORDERED:
                totals.ordered += 1
                totals.ordered_yen += line.yen or 0
            case Spending.POSSIBLE:
                totals.possible += 1
                totals.possible_yen += line.yen or 0
            case Spending.CANCELLED:
                totals.cancelled += 1
                totals.cancelled_yen += line.yen or 0
        totals.without_amount += line.spending is not Spending.NONE and line.yen is None
    return totals
