"""The query machine reached by its use cases: one transaction each, on a real SQLite file."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gateway.account_queries.lease import give_back_query, open_query_lease
from gateway.account_queries.read import get_query, list_queries
from gateway.account_queries.result import report_result
from gateway.account_queries.start import resume_queries_after_start
from gateway.account_queries.submit import submit_query
from gateway.account_queries.timeouts import move_on_timed_out, prune
from gateway.api.codec.account_queries import query_error, query_result
from gateway.domain.account_queries import (
    Query,
    QueryDetail,
    QueryError,
    QueryKind,
    QueryLease,
    QueryLeaseRequest,
    QueryOutcome,
    QueryStatus,
    QuerySubmission,
    QuerySubmitted,
)
from gateway.domain.instant import Instant
from gateway.domain.refusals import Reason, Refusal, RefusedError
from gateway.store.port import Transaction
from tests.gateway.support.book import Book
from tests.gateway.support.manual_time import TICK, ManualTime
from tests.properties.order_terms import Refused
from tests.properties.query_terms import POLICY, Failure, Outcome, Page, Reader, SeenQuery, Taken


class QueriesInUseCases:
    """See `tests.properties.query_terms.Queries`."""

    inside = True

    def __init__(self, folder: Path, time: ManualTime) -> None:
        self._book = Book(folder / "gateway.db", time)

    def submit(self, query_id: str, site: str, kind: QueryKind, params_json: str) -> tuple[QueryStatus, bool]:
        wanted = QuerySubmission(query_id, site, kind, params_json)
        done: QuerySubmitted = self._run(submit_query, POLICY, wanted, "upstream")
        return done.status, done.created

    def lease(self, reader: Reader, sites: tuple[str, ...], held: frozenset[str]) -> Taken | None:
        request = QueryLeaseRequest(reader.worker, reader.session, sites, held)
        lease: QueryLease | None = self._run(open_query_lease, POLICY, request)
        if lease is None:
            return None
        return Taken(lease.query_id, lease.site, lease.kind, lease.params_json, lease.attempt, lease.lives_for // TICK)

    def bring(self, query_id: str, worker: str, attempt: int | None, outcome: Outcome) -> QueryStatus | Refused:
        try:
            told = QueryOutcome(query_id, worker, attempt, *_checked(outcome))
        except RefusedError as error:
            return _refused(error.refusal)
        done: QueryStatus | Refusal = self._run(report_result, POLICY, told, lambda *_: None)
        return _refused(done) if isinstance(done, Refusal) else done

    def give_back(self, query_id: str, attempt: int) -> bool:
        done: bool = self._run(give_back_query, query_id, attempt)
        return done

    def sweep(self) -> None:
        self._run(_sweep)
        self._run(self._book.clock.save)

    def restart(self, *, crash: bool = False, meanwhile: Callable[[], None] = lambda: None) -> None:
        if not crash:
            self._run(self._book.clock.save)
        self._book.database.close()
        meanwhile()
        self._book.restart_from_closed()
        clock = self._book.clock
        self._book.run(resume_queries_after_start, POLICY, clock_continues=clock.continues, wall_utc=clock.wall_utc())
        self.sweep()

    def get(self, query_id: str) -> SeenQuery | Refused:
        found: QueryDetail | Refusal = self._run(get_query, query_id)
        return _refused(found) if isinstance(found, Refusal) else _seen(found.query, found.result_json)

    def page(self, status: QueryStatus | None, kind: QueryKind | None, size: int, token: str) -> Page | Refused:
        page = self._run(list_queries, status, kind, int(token) if token else None, size)
        return tuple(_seen(query, None) for query in page.items), str(page.next_after or "")

    def close(self) -> None:
        self._book.database.close()

    def _run(self, operation: Any, *args: Any) -> Any:
        return self._book.run(operation, *args)


def _sweep(tx: Transaction, now: Instant) -> None:
    move_on_timed_out(tx, now, POLICY)
    prune(tx, now, POLICY)


def _checked(outcome: Outcome) -> tuple[str | None, QueryError | None]:
    if isinstance(outcome, Failure):
        return None, query_error("error", outcome.code, outcome.message)
    return query_result("result_json", outcome, POLICY), None


def _refused(refusal: Refusal) -> Refused:
    return Refused(frozenset({Reason(refusal.reason)}))


def _seen(query: Query, result_json: str | None) -> SeenQuery:
    told = query.error
    error = None if told is None else Failure(told.code, told.message if told.code else "")
    return SeenQuery(
        query_id=query.query_id,
        site=query.site,
        kind=query.kind,
        params_json=query.params_json,
        status=query.status,
        owner=query.lease_owner,
        attempts=query.attempts,
        has_ended=query.completed_at is not None,
        error=error,
        result_json=result_json,
    )
