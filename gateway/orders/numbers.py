"""The order numbers of a task: every one that was ever told of it, in one table that everybody asks."""

from gateway.domain.instant import Instant
from gateway.domain.models import AlertKind, Task
from gateway.orders.history import clear_alert, raise_alert
from gateway.store.port import Transaction


def note_number(tx: Transaction, now: Instant, task: Task, number: str | None, *, stated: bool = False) -> None:
    """Keep an order number that was told of a task; alert if another task has it or this one has another.

    The rule: docs/specification.md#order-numbers.

    A number that came too late, or that a later report overwrote, counts as well; so does one that a person `stated`,
    who can take it back.
    """
    if number is None:
        return
    tx.change(
        "order_number_add",
        site=task.site, site_order_id=number, task_id=task.task_id, at=now.utc, stated=int(stated),
    )  # fmt: skip
    tx.change("task_count_numbers", task_id=task.task_id)
    others = tx.all("order_number_other_tasks", site_order_id=number, site=task.site, task_id=task.task_id)
    if others:
        names = ", ".join(row["task_id"] for row in others)
        raise_alert(
            tx, now, AlertKind.SITE_ORDER_ID_CONFLICT, f"{task.site}/{number}",
            f"order number {number} of {task.site} is told by task {task.task_id} and by {names}",
        )  # fmt: skip
    numbers = [row["site_order_id"] for row in tx.all("order_numbers_of_task", task_id=task.task_id)]
    if len(numbers) > 1:
        raise_alert(
            tx, now, AlertKind.SITE_ORDER_ID_CONFLICT, task.task_id,
            f"task {task.task_id} tells of several order numbers: {', '.join(numbers)}",
        )  # fmt: skip


def take_back_number(tx: Transaction, now: Instant, task: Task, number: str) -> None:
    """Forget an order number that a person had stated and nobody else told, and what it was in conflict with."""
    tx.change("statement_number_take_back", task_id=task.task_id, site_order_id=number)
    tx.change("statement_number_clear", task_id=task.task_id, site_order_id=number)
    tx.change("task_count_numbers", task_id=task.task_id)
    if len(tx.all("order_number_other_tasks", site_order_id=number, site=task.site, task_id=task.task_id)) == 1:
        clear_alert(tx, now, AlertKind.SITE_ORDER_ID_CONFLICT, f"{task.site}/{number}")
