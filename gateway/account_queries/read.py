"""Reading queries."""

from gateway.account_queries.submit import query_not_found
from gateway.domain.account_queries import Query, QueryDetail, QueryKind, QueryPage, QuerySlice, QueryStatus
from gateway.domain.instant import Instant
from gateway.domain.paging import fill, in_batches
from gateway.domain.refusals import Refusal
from gateway.store.port import ReadTransaction, Row
from gateway.store.query_rows import find_query, find_result, query_from

_ABOVE_ALL_ROWS = 2**63 - 1
_SIZE_WITHOUT_TEXTS = 2_000


def get_query(tx: ReadTransaction, _now: Instant, query_id: str) -> QueryDetail | Refusal:
    """Return one query with its result."""
    query = find_query(tx, query_id)
    return query_not_found(query_id) if query is None else QueryDetail(query, find_result(tx, query_id))


def list_queries(
    tx: ReadTransaction,
    _now: Instant,
    status: QueryStatus | None,
    kind: QueryKind | None,
    below: int | None,
    count: int,
) -> QueryPage:
    """Return up to `count` queries older than row `below` (None: from the newest), newest first.

    Fewer where they are large, but at least one. Rows are numbered by submission and never reused, so paging neither
    skips nor repeats.
    """
    rows = in_batches(
        lambda last, few: _newest(tx, status, kind, below=last, count=few, skip=0),
        _ABOVE_ALL_ROWS if below is None else below,
        lambda row: row["row"],
    )
    page = fill(map(query_from, rows), count, _size)
    return QueryPage(page.items, page.items[-1].row if page.more else None)


def slice_queries(
    tx: ReadTransaction, now: Instant, status: QueryStatus | None, kind: QueryKind | None, skip: int, count: int
) -> QuerySlice:
    """Return a page as `list_queries` does, after leaving out the newest `skip`, and how many there are in all."""
    first = _newest(tx, status, kind, below=_ABOVE_ALL_ROWS, count=1, skip=skip)
    total = tx.one("queries_count", status=status, kind=kind)
    queries = list_queries(tx, now, status, kind, first[0]["row"] + 1, count).queries if first else ()
    return QuerySlice(queries, 0 if total is None else total["count"])


def _size(query: Query) -> int:
    """Return about how many bytes a query takes in an answer, rather too many than too few."""
    words = "" if query.error is None else query.error.message
    return len(query.params_json.encode()) + len(words.encode()) + _SIZE_WITHOUT_TEXTS


def _newest(
    tx: ReadTransaction, status: QueryStatus | None, kind: QueryKind | None, *, below: int, count: int, skip: int
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
