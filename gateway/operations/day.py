"""The statement of a day, page by page (docs/money.md#statement): a walk along the index of submissions."""

from gateway.domain.instant import Instant
from gateway.domain.models import Task
from gateway.domain.paging import Page, fill
from gateway.domain.search import Position, TaskSearch
from gateway.domain.statements import DECISIONS, MAX_DECISIONS, Spending, StatementDay, StatementLine, spending_of
from gateway.orders.search import search_tasks
from gateway.store import history, order_numbers, reports
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction

_SIZE_WITHOUT_TEXTS = 1_000


def tasks_of(day: StatementDay) -> TaskSearch:
    """Return the search for what was filed on a day, as it was filed."""
    return TaskSearch(created_from=day.starts_at, created_to=day.ends_at, oldest_first=True)


def list_statement(
    tx: ReadTransaction, now: Instant, day: StatementDay, after: Position | None, count: int
) -> Page[StatementLine, Position]:
    """Return up to `count` lines behind a position, in the order of submission; fewer where they are large."""
    found = search_tasks(tx, now, tasks_of(day), after, count)
    page = fill((_line(tx, detail.task) for detail in found.items), count, _size)
    return Page(page.items, (page.items[-1].task.row,) if page.more else found.next_after)


def _line(tx: ReadTransaction, task: Task) -> StatementLine:
    spending = spending_of(task)
    yen = None
    if spending is not Spending.NONE:
        told = reports.amount_of_order(tx, task.task_id)
        yen = task.terms.payable_yen if told is None and task.terms is not None else told
    decided = history.newest(tx, task.task_id, DECISIONS, first=0, below=ABOVE_ALL_ROWS, count=MAX_DECISIONS)
    return StatementLine(task, spending, yen, tuple(order_numbers.of_task(tx, task.task_id)), tuple(reversed(decided)))


def _size(line: StatementLine) -> int:
    """Return about how many bytes a line takes in an answer, rather too many than too few."""
    return sum(len(event.reason.encode()) + _SIZE_WITHOUT_TEXTS for event in line.decisions) + _SIZE_WITHOUT_TEXTS
