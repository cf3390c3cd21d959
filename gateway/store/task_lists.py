"""Lists of tasks by status, site and account as the JSON contract counts them; an index stands behind each."""

from gateway.domain.models import TaskFilter
from gateway.store.port import ReadTransaction, Row


def row_at(tx: ReadTransaction, wanted: TaskFilter, offset: int) -> int | None:
    """Return the row number of the wanted task after the `offset` newest; None if there are not so many."""
    status, site, account = wanted.status, wanted.site, wanted.account
    if account is not None and status is not None:
        row = tx.one(
            "tasks_slice_by_status_and_account", status=status, site=site, account=account, offset=offset, count=1
        )
    elif account is not None:
        row = tx.one("tasks_slice_by_account", site=site, account=account, offset=offset, count=1)
    elif status is not None and site is not None:
        row = tx.one("tasks_slice_by_status_and_site", status=status, site=site, offset=offset, count=1)
    elif status is not None:
        row = tx.one("tasks_slice_by_status", status=status, offset=offset, count=1)
    elif site is not None:
        row = tx.one("tasks_slice_by_site", site=site, offset=offset, count=1)
    else:
        row = tx.one("tasks_slice", offset=offset, count=1)
    return None if row is None else int(row["row"])


def number_of(tx: ReadTransaction, wanted: TaskFilter) -> int:
    """Return how many of the wanted tasks there are."""
    status, site, account = wanted.status, wanted.site, wanted.account
    row: Row | None
    if account is not None and status is not None:
        row = tx.one("tasks_count_by_status_and_account", status=status, site=site, account=account)
    elif account is not None:
        row = tx.one("tasks_count_by_account", site=site, account=account)
    elif status is not None and site is not None:
        row = tx.one("tasks_count_by_status_and_site", status=status, site=site)
    elif status is not None:
        row = tx.one("tasks_count_by_status", status=status)
    elif site is not None:
        row = tx.one("tasks_count_by_site", site=site)
    else:
        row = tx.one("tasks_count")
    return 0 if row is None else int(row["count"])
