"""The query machine as docs/two-queues.md tells it. Reading does no harm, so doubt means reading again."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from gateway.domain.account_queries import QueryKind, QueryStatus
from gateway.domain.refusals import Reason
from tests.properties.order_terms import Refused
from tests.properties.query_terms import LIFETIME, POLICY, RETENTION, TTL, Failure, Outcome, Reader, SeenQuery, Taken

S = QueryStatus
OPEN = (S.QUEUED, S.LEASED)
INVALID = Refused(frozenset({Reason.QUERY_LEASE_INVALID}))
NOT_FOUND = Refused(frozenset({Reason.QUERY_NOT_FOUND}))
BAD_FIELD = Refused(frozenset({Reason.INVALID_FIELD}))


@dataclass
class Query:
    """A query. `attempts`: who held it, the first one first; `answered`: the attempt that ended it, and with what."""

    query_id: str
    site: str
    kind: QueryKind
    params_json: str
    lives_until: int
    filed_utc: int
    status: QueryStatus = S.QUEUED
    attempts: list[Reader] = field(default_factory=list)
    deadline: int = 0
    given_again: bool = False
    ended: int | None = None
    error: Failure | None = None
    result: str | None = None
    answered: Outcome | None = None


class QueryModel:
    """All queries. `now` is elapsed time; the wall clock counts only across a reboot."""

    def __init__(self) -> None:
        self.now = self.wall = self.utc = 0
        self.queries: dict[str, Query] = {}

    def advance(self, delay: int) -> None:
        self.now += delay
        self.set_wall(delay)

    def set_wall(self, step: int) -> None:
        self.wall += step
        self.utc = max(self.utc, self.wall)

    def move_on(self) -> None:
        """What time does, at use as well as by the sweep."""
        for query in self.queries.values():
            if query.status is S.LEASED and self.now >= query.deadline:
                self._lapse(query)
            elif query.status is S.QUEUED and self.now >= query.lives_until:
                self._end(query, S.EXPIRED, Failure(0))

    def sweep(self) -> None:
        self.move_on()
        for query in list(self.queries.values()):
            if query.ended is not None and self.now >= query.ended + RETENTION:
                del self.queries[query.query_id]

    def reboot(self, down: int) -> None:
        """The wall clock says what is left of lifetimes; every lease counts as lapsed."""
        self.set_wall(down)
        for query in self.queries.values():
            if query.status in OPEN:
                query.lives_until = self.now + min(max(query.filed_utc + LIFETIME - self.wall, 0), LIFETIME)
            if query.status is S.LEASED:
                self._lapse(query)

    def _lapse(self, query: Query) -> None:
        if len(query.attempts) >= POLICY.max_attempts:
            self._end(query, S.FAILED, Failure(0))
        elif self.now >= query.lives_until:
            self._end(query, S.EXPIRED, Failure(0))
        else:
            query.status = S.QUEUED

    def _end(self, query: Query, status: QueryStatus, error: Failure | None) -> None:
        query.status, query.error, query.ended = status, error, self.now

    def submit(self, query_id: str, site: str, kind: QueryKind, params_json: str) -> tuple[QueryStatus, bool]:
        """The same key again answers the existing query and changes nothing."""
        created = query_id not in self.queries
        if created:
            self.queries[query_id] = Query(query_id, site, kind, params_json, self.now + LIFETIME, self.utc)
        return self.queries[query_id].status, created

    def lease(self, reader: Reader, sites: tuple[str, ...], held: frozenset[str]) -> Taken | None:
        """A query whose answer this session lost, or else the oldest of the sites; any number in flight."""
        for query in self.queries.values():
            lost = query.query_id not in held and reader.session is not None
            if lost and query.status is S.LEASED and query.attempts[-1] == reader and self.now < query.deadline:
                query.given_again = True
                return self._taken(query)
        self.move_on()
        for query in self.queries.values():
            if query.status is S.QUEUED and query.site in sites:
                query.attempts.append(reader)
                query.status, query.deadline, query.given_again = S.LEASED, self.now + TTL, False
                return self._taken(query)
        return None

    def _taken(self, query: Query) -> Taken:
        attempt, left = len(query.attempts), query.deadline - self.now
        return Taken(query.query_id, query.site, query.kind, query.params_json, attempt, left)

    def give_back(self, query_id: str, attempt: int) -> bool:
        """The answer did not reach its transport. The attempt is undone if no other answer brought it."""
        query = self.queries.get(query_id)
        if query is None or query.status is not S.LEASED or len(query.attempts) != attempt or query.given_again:
            return False
        query.attempts.pop()
        query.status = S.QUEUED
        return True

    def bring(self, query_id: str, worker: str, attempt: int | None, outcome: Outcome) -> QueryStatus | Refused:
        if not _is_well_formed(outcome):
            return BAD_FIELD
        query = self.queries.get(query_id)
        if query is None:
            return NOT_FOUND
        own = [number for number, reader in enumerate(query.attempts, 1) if reader.worker == worker]
        if attempt is None and len(own) == 1:
            attempt = own[0]
        if attempt not in own or attempt != len(query.attempts):
            return INVALID
        if query.status not in OPEN:
            return query.status if query.answered == outcome else INVALID
        if query.status is S.LEASED and self.now >= query.deadline:
            self._lapse(query)
            return INVALID
        if query.status is not S.LEASED:
            return INVALID
        query.answered = outcome
        if isinstance(outcome, Failure):
            self._end(query, S.FAILED, outcome)
        else:
            query.result = outcome
            self._end(query, S.SUCCEEDED, None)
        return query.status

    def get(self, query_id: str) -> SeenQuery | Refused:
        query = self.queries.get(query_id)
        if query is None:
            return NOT_FOUND
        return SeenQuery(
            query_id=query_id,
            site=query.site,
            kind=query.kind,
            params_json=query.params_json,
            status=query.status,
            owner=query.attempts[-1].worker if query.status is S.LEASED else None,
            attempts=len(query.attempts),
            has_ended=query.status not in OPEN,
            error=query.error,
            result_json=query.result,
        )

    def listed(self, status: QueryStatus | None, kind: QueryKind | None) -> Iterator[SeenQuery]:
        for query in reversed(self.queries.values()):
            seen = self.get(query.query_id)
            if status in {None, query.status} and kind in {None, query.kind}:
                assert isinstance(seen, SeenQuery)
                yield seen.in_a_list()


def _is_well_formed(outcome: Outcome) -> bool:
    if isinstance(outcome, Failure):
        return bool(outcome.message)
    return len(outcome) <= POLICY.max_result_bytes and outcome.startswith("{")
