"""What follows from an order number: alerts where two tasks were told the same one, or one task several."""

from gateway.domain.instant import Instant
from gateway.domain.models import AlertKind, OrderNumber, Task
from gateway.store import alerts, order_numbers, reports
from gateway.store.port import Transaction


def note_number(tx: Transaction, now: Instant, task: Task, number: str | None, *, stated: bool = False) -> None:
    """Keep an order number that was told of a task; alert if another task has it or this one has another.

    The rule: docs/specification.md#order-numbers.

    A number that came too late, or that a later report overwrote, counts as well; so does one that a person `stated`,
    who can take it back.
    """
    if number is None:
        return
    order_numbers.add(tx, now, task, number, stated=stated)
    others = order_numbers.other_tasks_with(tx, task, number)
    if others:
        alerts.raise_once(
            tx, now, AlertKind.SITE_ORDER_ID_CONFLICT, OrderNumber(task.site, number),
            f"order number {number} of {task.site} is told by task {task.task_id} and by {', '.join(others)}",
        )  # fmt: skip
    numbers = order_numbers.of_task(tx, task.task_id)
    if len(numbers) > 1:
        alerts.raise_once(
            tx, now, AlertKind.SITE_ORDER_ID_CONFLICT, task.task_id,
            f"task {task.task_id} tells of several order numbers: {', '.join(numbers)}",
        )  # fmt: skip


def take_back_number(tx: Transaction, now: Instant, task: Task, number: str) -> None:
    """Forget an order number that a person had stated and nobody else told, and what it was in conflict with."""
    order_numbers.take_back(tx, task, number)
    if len(order_numbers.other_tasks_with(tx, task, number)) == 1:
        alerts.clear(tx, now, AlertKind.SITE_ORDER_ID_CONFLICT, OrderNumber(task.site, number))
    reports.clear_number(tx, task.task_id, number)
