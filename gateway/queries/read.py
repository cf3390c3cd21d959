"""Reading queries."""

from gateway.domain.moment import Moment
from gateway.domain.queries import QueryDetail, QueryKind, QueryPage, QuerySlice, QueryStatus
from gateway.domain.refusals import Refusal
from gateway.queries.submit import query_not_found
from gateway.store.port import Row, Transaction
from gateway.store.query_rows import find_query, find_result, query_from

_ABOVE_ALL_ROWS = 2**63 - 1


def get_query(tx: Transaction, _now: Moment, query_id: str) -> QueryDetail | Refusal:
    """Return one query with its result."""
    query = find_query(tx, query_id)
    return query_not_found(query_id) if query is None else QueryDetail(query, find_result(tx, query_id))


def list_queries(
    tx: Transaction, _now: Moment, status: QueryStatus | None, kind: QueryKind | None, below: int | None, count: int
) -> QueryPage:
    """Return up to `count` queries older than row `below` (None: from the newest), newest first.

    Rows are numbered by submission and never reused, so paging neither skips nor repeats.
    """
    rows = _newest(tx, status, kind, below=_ABOVE_ALL_ROWS if below is None else below, count=count + 1, skip=0)
    queries = tuple(query_from(row) for row in rows[:count])
    return QueryPage(queries, queries[-1].row if len(rows) > count else None)


def slice_queries(
    tx: Transaction, _now: Moment, status: QueryStatus | None, kind: QueryKind | None, skip: int, count: int
) -> QuerySlice:
    """Return up to `count` queries after the newest `skip`, newest first, and how many there are in all."""
    rows = _newest(tx, status, kind, below=_ABOVE_ALL_ROWS, count=count, skip=skip)
    total = tx.one("queries_count", status=status, kind=kind)
    return QuerySlice(tuple(query_from(row) for row in rows), 0 if total is None else total["count"])


def _newest(
    tx: Transaction, status: QueryStatus | None, kind: QueryKind | None, *, below: int, count: int, skip: int
) -> list[Row]:
    name = "queries_newest"
    filters: dict[str, str] = {}
    if status is not None:
        name += "_by_status"
        filters["status"] = status
    if kind is not None:
        name += "_and_kind" if filters else "_by_kind"
        filters["kind"] = kind
    return list(tx.all(name, below=below, count=count, skip=skip, **filters))
