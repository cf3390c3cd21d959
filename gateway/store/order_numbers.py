"""Every order number that was ever told of a task, in the one table that everybody asks."""

from gateway.domain.instant import Instant
from gateway.domain.models import Task
from gateway.store.port import ReadTransaction, Transaction


def add(tx: Transaction, now: Instant, task: Task, number: str, *, stated: bool) -> None:
    """Keep a number that a worker told, or a person `stated`; what a worker told is no mere statement any more."""
    tx.change_one(
        "order_number_add",
        site=task.site,
        account=task.account,
        site_order_id=number,
        task_id=task.task_id,
        at=now.utc,
        stated=int(stated),
    )
    tx.change_one("task_count_numbers", task_id=task.task_id)


def take_back(tx: Transaction, task: Task, number: str) -> None:
    """Forget a number that nobody but a person told. Raises RowCountError if a worker did."""
    tx.change_one("statement_number_take_back", task_id=task.task_id, site_order_id=number)
    tx.change_one("task_count_numbers", task_id=task.task_id)


def of_task(tx: ReadTransaction, task_id: str) -> dict[str, bool]:
    """Return the task's numbers as they were told, and of each whether nobody but a person has told it."""
    return {row["site_order_id"]: bool(row["stated"]) for row in tx.all("order_numbers_of_task", task_id=task_id)}


def other_tasks_with(tx: ReadTransaction, task: Task, number: str) -> list[str]:
    """Return up to ten other tasks of the site of which this number was told."""
    rows = tx.all("order_number_other_tasks", site_order_id=number, site=task.site, task_id=task.task_id)
    return [row["task_id"] for row in rows]


def of_other_tasks(tx: ReadTransaction, task: Task, since: str, count: int) -> list[str]:
    """Return up to `count` numbers told of other tasks of the target since a time, the newest first."""
    rows = tx.all(
        "order_numbers_of_other_tasks",
        site=task.site,
        account=task.account,
        task_id=task.task_id,
        since=since,
        count=count,
    )
    return [row["site_order_id"] for row in rows]


def any_missing_of_other_tasks(tx: ReadTransaction, task: Task, since: str) -> bool:
    """Tell whether another task of the target may have an order since a time whose number nobody has told."""
    found = tx.one(
        "task_possibly_ordered_without_number",
        site=task.site,
        account=task.account,
        task_id=task.task_id,
        since=since,
    )
    return found is not None
