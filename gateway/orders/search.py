"""Finding tasks: a walk along one index, in which every other condition is tried (docs/adr/0024-finding-tasks.md).

Which index: the one whose condition leaves the fewest tasks. What a page costs is bounded by how many rows it looks at,
not by how many tasks there are: a page may be short, or empty, and another one follow.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import islice
from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.models import Task, TaskDetail, TaskFilter
from gateway.domain.paging import Page, Slice, fill
from gateway.domain.search import Position, TaskSearch, since_epoch
from gateway.orders.read import size_of_task
from gateway.store import task_lists, task_search
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction
from gateway.store.reports import with_reports
from gateway.store.task_search import Lane

MAX_LOOKED_AT: Final = 20_000
"""Rows that one page looks at, at most."""

MAX_LOOKED_THROUGH: Final = 1_000
"""Rows whose ids one page looks through for what they contain, at most; so among millions it takes no longer."""

FEW_IDS: Final = 1_000
"""Up to so many tasks whose id begins alike are read by that alone; of more, most of the newest ones will do."""

_BATCH: Final = 16
_LARGEST_BATCH: Final = 1_024

Source = Callable[[Position | None, int], Sequence[Position]]
"""Gives up to so many positions behind one (None: from the beginning), in the order of the list."""


def search_tasks(
    tx: ReadTransaction, now: Instant, wanted: TaskSearch, after: Position | None, count: int
) -> Page[TaskDetail, Position]:
    """Return up to `count` of the wanted tasks behind a position, in the order of the list.

    Fewer where they are large, so that a page fits the 4 MiB that a client takes by default, or where few of many rows
    are wanted: what matters is `next_after`. In the order of submission paging neither skips nor repeats, since rows
    are never reused. In the order of update a task that changes meanwhile moves.
    """
    walk = _Walk(tx, wanted, after)
    page = fill((with_reports(tx, task) for task in walk.tasks()), count, size_of_task)
    return Page(page.items, _position(wanted, page.items[-1].task) if page.more else walk.goes_on_after)


def list_tasks_from(
    tx: ReadTransaction, now: Instant, wanted: TaskFilter, offset: int, count: int
) -> Slice[TaskDetail]:
    """Return the page of the newest tasks after leaving out `offset` of them, and how many tasks there are in all.

    For the documented JSON contract. Both figures come from an index alone.
    """
    first = task_lists.row_at(tx, wanted, min(offset, ABOVE_ALL_ROWS))
    total = task_lists.number_of(tx, wanted)
    if first is None:
        return Slice((), total)
    statuses = () if wanted.status is None else (wanted.status,)
    search = TaskSearch(statuses, wanted.site, wanted.account)
    return Slice(search_tasks(tx, now, search, (first + 1,), count).items, total)


class _Walk:
    """One page's walk. `goes_on_after`: where it stopped because it had looked at enough; None at the list's end."""

    def __init__(self, tx: ReadTransaction, wanted: TaskSearch, after: Position | None) -> None:
        self._tx = tx
        self._wanted = wanted
        self._after = after
        self.goes_on_after: Position | None = None

    def tasks(self) -> Iterator[Task]:
        """Yield the wanted tasks, read a few at a time: a page may need no more."""
        positions = self.positions()
        while few := list(islice(positions, _BATCH)):
            yield from task_search.tasks_in(self._tx, [position[-1] for position in few])

    def positions(self) -> Iterator[Position]:
        """Yield the positions of the wanted tasks."""
        first, last = _filed_between(self._tx, self._wanted)
        source, is_whole = _source(self._tx, self._wanted, first, last)
        after, size, looked_at = self._after, _BATCH, 0
        most = MAX_LOOKED_THROUGH if self._wanted.task_id_contains else MAX_LOOKED_AT
        while looked_at < most:
            found = source(after, size)
            if not found:
                return
            wanted = found if is_whole else self._matching(found, range(first, last))
            yield from wanted
            after, looked_at = found[-1], looked_at + len(found)
            # Where few are wanted more are looked at in one go.
            size = min(_LARGEST_BATCH, size * (2 if is_whole or 2 * len(wanted) > len(found) else 4))
        self.goes_on_after = after

    def _matching(self, found: Sequence[Position], filed: range) -> list[Position]:
        rows = [position[-1] for position in found if position[-1] in filed]
        wanted = task_search.matching(self._tx, self._wanted, rows)
        return [position for position in found if position[-1] in wanted]


def _position(wanted: TaskSearch, task: Task) -> Position:
    return (since_epoch(task.updated_at), task.row) if wanted.by_update else (task.row,)


def _source(tx: ReadTransaction, wanted: TaskSearch, first: int, last: int) -> tuple[Source, bool]:
    """Return where the walk goes along, from row `first` and before `last`, and if whatever it comes by is wanted."""
    if wanted.by_update:
        is_whole = wanted == TaskSearch(
            updated_from=wanted.updated_from, updated_to=wanted.updated_to, oldest_first=wanted.oldest_first
        )

        def by_update(after: Position | None, count: int) -> Sequence[Position]:
            return task_search.rows_by_update(tx, wanted, after, count)

        return by_update, is_whole
    few = _few(tx, wanted)
    if few is not None:
        return _among([row for row in few if first <= row < last], wanted), False
    lanes, is_whole = _lanes(wanted)

    def along(after: Position | None, count: int) -> Sequence[Position]:
        above, below = first - 1, last
        if after is not None:
            above, below = (max(above, after[0]), below) if wanted.oldest_first else (above, min(below, after[0]))
        rows = (
            task_search.rows_of(tx, lane, (above, below), count, oldest_first=wanted.oldest_first) for lane in lanes
        )
        return [(row,) for row in islice(merge(*rows, reverse=not wanted.oldest_first), count)]

    return along, is_whole


def _filed_between(tx: ReadTransaction, wanted: TaskSearch) -> tuple[int, int]:
    """Return the first row of those filed in the wanted range, and the first one behind them."""
    first = 1 if wanted.created_from is None else task_search.first_row_of(tx, wanted.created_from)
    last = ABOVE_ALL_ROWS if wanted.created_to is None else task_search.first_row_of(tx, wanted.created_to)
    return first, last


def _few(tx: ReadTransaction, wanted: TaskSearch) -> list[int] | None:
    """Return the rows for which a condition holds that is known to leave few; None if there is none."""
    if wanted.site_order_id is not None:
        return task_search.rows_by_number(tx, wanted.site_order_id)
    if wanted.needs_decision:
        return task_search.rows_to_decide(tx)
    if wanted.task_id_prefix:
        rows = task_search.rows_by_prefix(tx, wanted.task_id_prefix, FEW_IDS + 1)
        return rows if len(rows) <= FEW_IDS else None
    return None


def _among(rows: Sequence[int], wanted: TaskSearch) -> Source:
    key = sorted(row if wanted.oldest_first else -row for row in rows)

    def among(after: Position | None, count: int) -> Sequence[Position]:
        begin = 0 if after is None else bisect_right(key, after[0] if wanted.oldest_first else -after[0])
        return [(abs(each),) for each in key[begin : begin + count]]

    return among


def _lanes(wanted: TaskSearch) -> tuple[list[Lane], bool]:
    """Return where to go along, for each of the statuses by itself; and whether nothing else is asked for."""
    rest = TaskSearch(created_from=wanted.created_from, created_to=wanted.created_to, oldest_first=wanted.oldest_first)
    if wanted.held_for_approval:
        return [Lane(held_for_approval=True)], wanted == replace(rest, held_for_approval=True)
    if wanted.labels:
        return [Lane(label=wanted.labels[0])], wanted == replace(rest, labels=wanted.labels[:1])
    # Of an account there are fewer than of a site.
    lane = Lane(account=wanted.account) if wanted.account is not None else Lane(site=wanted.site)
    is_whole = wanted == replace(rest, statuses=wanted.statuses, site=lane.site, account=lane.account)
    return [replace(lane, status=status) for status in wanted.statuses] or [lane], is_whole
