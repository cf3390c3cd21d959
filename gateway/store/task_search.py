"""Rows of tasks in the order of a list, by the index behind a condition; and which of them meet all the others."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gateway.domain.approvals import HELD_FOR_APPROVAL
from gateway.domain.labels import labels_text
from gateway.domain.models import Task
from gateway.domain.search import Position, TaskSearch, since_epoch, utc_of
from gateway.domain.states import TaskStatus
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction, Row
from gateway.store.tasks import task_of

_AFTER_ALL_TIMES = "~"
_BEFORE_ALL_TIMES = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """Tasks that an index holds in the order of their rows: those that are held for approval, those of a label, or of a
    status and one of account and site, or of one of them; nothing given: all tasks.
    """

    status: TaskStatus | None = None
    site: str | None = None
    account: str | None = None
    label: tuple[str, str] | None = None
    held_for_approval: bool = False


def rows_of(tx: ReadTransaction, lane: Lane, between: tuple[int, int], count: int, *, oldest_first: bool) -> list[int]:
    """Return up to `count` rows of a lane between two others, neither included, in the order of the list."""
    above, below = between
    read = _oldest if oldest_first else _newest
    return [row["row"] for row in read(tx, lane, above=above, below=below, count=count)]


def _newest(tx: ReadTransaction, lane: Lane, **page: int) -> Sequence[Row]:
    status, site, account = lane.status, lane.site, lane.account
    if lane.held_for_approval:
        return tx.all("rows_newest_held", held_until=HELD_FOR_APPROVAL, **page)
    if lane.label is not None:
        return tx.all("rows_newest_by_label", key=lane.label[0], value=lane.label[1], **page)
    if status is not None and account is not None:
        return tx.all("rows_newest_by_status_and_account", status=status, account=account, **page)
    if status is not None and site is not None:
        return tx.all("rows_newest_by_status_and_site", status=status, site=site, **page)
    if status is not None:
        return tx.all("rows_newest_by_status", status=status, **page)
    if account is not None:
        return tx.all("rows_newest_by_account", account=account, **page)
    if site is not None:
        return tx.all("rows_newest_by_site", site=site, **page)
    return tx.all("rows_newest", **page)


def _oldest(tx: ReadTransaction, lane: Lane, **page: int) -> Sequence[Row]:
    status, site, account = lane.status, lane.site, lane.account
    if lane.held_for_approval:
        return tx.all("rows_oldest_held", held_until=HELD_FOR_APPROVAL, **page)
    if lane.label is not None:
        return tx.all("rows_oldest_by_label", key=lane.label[0], value=lane.label[1], **page)
    if status is not None and account is not None:
        return tx.all("rows_oldest_by_status_and_account", status=status, account=account, **page)
    if status is not None and site is not None:
        return tx.all("rows_oldest_by_status_and_site", status=status, site=site, **page)
    if status is not None:
        return tx.all("rows_oldest_by_status", status=status, **page)
    if account is not None:
        return tx.all("rows_oldest_by_account", account=account, **page)
    if site is not None:
        return tx.all("rows_oldest_by_site", site=site, **page)
    return tx.all("rows_oldest", **page)


def rows_by_update(tx: ReadTransaction, wanted: TaskSearch, after: Position | None, count: int) -> Sequence[Position]:
    """Return up to `count` positions of tasks updated in the wanted range, behind `after`, in the list's order."""
    from_at, above = wanted.updated_from or _BEFORE_ALL_TIMES, 0
    to_at, below = wanted.updated_to or _AFTER_ALL_TIMES, 0
    if wanted.oldest_first:
        if after is not None:
            from_at, above = max((from_at, above), (utc_of(after[0]), after[1]))
        rows = tx.all("rows_oldest_by_update", from_at=from_at, above=above, to_at=to_at, count=count)
    else:
        if after is not None:
            to_at, below = min((to_at, below), (utc_of(after[0]), after[1]))
        rows = tx.all("rows_newest_by_update", from_at=from_at, to_at=to_at, below=below, count=count)
    return [(since_epoch(row["updated_at"]), row["row"]) for row in rows]


def first_row_of(tx: ReadTransaction, at: str) -> int:
    """Return the row of the first task filed at a time or later; a number above all rows if there is none.

    Rows are numbered in the order of their times, so it is found by halving: among ten million in 24 looks.
    """
    newest = tx.one("task_filed_last")
    first, behind = 1, 1 if newest is None else newest["row"] + 1
    while first < behind:
        middle = (first + behind) // 2
        found = tx.one("task_filed_next", row=middle)
        if found is not None and found["created_at"] < at:
            first = found["row"] + 1
        else:
            behind = middle
    found = tx.one("task_filed_next", row=first)
    return ABOVE_ALL_ROWS if found is None else int(found["row"])


def rows_by_number(tx: ReadTransaction, site_order_id: str) -> list[int]:
    """Return the rows of all tasks of which this order number was ever told."""
    return [row["row"] for row in tx.all("rows_by_number", site_order_id=site_order_id)]


def rows_to_decide(tx: ReadTransaction) -> list[int]:
    """Return the rows of all tasks of which an alert stands."""
    return [row["row"] for row in tx.all("rows_to_decide")]


def rows_by_prefix(tx: ReadTransaction, prefix: str, count: int) -> list[int]:
    """Return the rows of up to `count` tasks whose id begins so, in no order."""
    # No character of an id comes behind this one.
    return [row["row"] for row in tx.all("rows_by_prefix", prefix=prefix, behind=f"{prefix}~", count=count)]


def matching(tx: ReadTransaction, wanted: TaskSearch, rows: Iterable[int]) -> set[int]:
    """Return those of the rows that meet the conditions, whatever index they come from; times apart."""
    found = tx.all(
        "rows_matching",
        rows=_keys(map(str, rows)),
        statuses="".join(f",{status}," for status in wanted.statuses),
        site=wanted.site or "",
        account=wanted.account or "",
        prefix=wanted.task_id_prefix,
        contained=wanted.task_id_contains,
        site_order_id=wanted.site_order_id or "",
        needs_decision=int(wanted.needs_decision),
        held_until=HELD_FOR_APPROVAL if wanted.held_for_approval else "",
        labels=_keys(labels_text({key: value})[1:-1] for key, value in wanted.labels),
    )
    return {row["row"] for row in found}


def tasks_in(tx: ReadTransaction, rows: Sequence[int]) -> list[Task]:
    """Return the tasks of these rows in their order."""
    found = {row["row"]: task_of(row) for row in tx.all("tasks_in_rows", rows=_keys(map(str, rows)))}
    return [found[row] for row in rows]


def _keys(texts: Iterable[str]) -> str:
    return json.dumps(dict.fromkeys(texts, 0))
