"""Reading queries."""

from typing import Final

from gateway.account_queries.submit import query_not_found
from gateway.domain.account_queries import Query, QueryDetail, QueryKind, QueryStatus
from gateway.domain.instant import Instant
from gateway.domain.paging import Page, Slice, fill, in_batches
from gateway.domain.refusals import Refusal
from gateway.store import account_queries
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction

_SIZE_WITHOUT_TEXTS: Final = 2_000


def get_query(tx: ReadTransaction, _now: Instant, query_id: str) -> QueryDetail | Refusal:
    """Return one query with its result."""
    query = account_queries.find(tx, query_id)
    if query is None:
        return query_not_found(query_id)
    return QueryDetail(query, account_queries.find_result(tx, query_id))


def list_queries(
    tx: ReadTransaction,
    _now: Instant,
    status: QueryStatus | None,
    kind: QueryKind | None,
    below: int | None,
    count: int,
) -> Page[Query, int]:
    """Return up to `count` queries older than row `below` (None: from the newest), newest first.

    Fewer where they are large, but at least one. Rows are numbered by submission and never reused, so paging neither
    skips nor repeats.
    """
    queries = in_batches(
        lambda last, few: account_queries.newest(tx, status, kind, below=last, count=few),
        ABOVE_ALL_ROWS if below is None else below,
        lambda query: query.row,
    )
    page = fill(queries, count, _size)
    return Page(page.items, page.items[-1].row if page.more else None)


def slice_queries(
    tx: ReadTransaction, now: Instant, status: QueryStatus | None, kind: QueryKind | None, skip: int, count: int
) -> Slice[Query]:
    """Return a page as `list_queries` does, after leaving out the newest `skip`, and how many there are in all."""
    first = account_queries.newest(tx, status, kind, count=1, skip=skip)
    queries = list_queries(tx, now, status, kind, first[0].row + 1, count).items if first else ()
    return Slice(queries, account_queries.number_of(tx, status, kind))


def _size(query: Query) -> int:
    """Return about how many bytes a query takes in an answer, rather too many than too few."""
    words = "" if query.error is None else query.error.message
    return len(query.params_json.encode()) + len(words.encode()) + _SIZE_WITHOUT_TEXTS
