"""Everybody's requests about account queries, in any order, told to the gateway and to the model alike."""

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from gateway.domain.account_queries import QueryKind, QueryStatus
from tests.gateway.support.manual_time import TICK, ManualTime
from tests.properties.order_terms import SECOND
from tests.properties.queries_in_use_cases import QueriesInUseCases
from tests.properties.queries_over_grpc import QueriesOverGrpc
from tests.properties.query_model import BAD_FIELD, NOT_FOUND, Query, QueryModel
from tests.properties.query_terms import (
    LIFETIME,
    POLICY,
    RETENTION,
    SITES,
    TTL,
    Failure,
    Outcome,
    Queries,
    Reader,
    SeenQuery,
)

S = QueryStatus
KEYS = ("q-1", "q-2", "q-3")
READERS = (
    Reader("w1", "session-of-w1-first"),
    Reader("w1", "session-of-w1-later"),
    Reader("w2", "session-of-w2-first"),
    Reader("w2", "session-of-w1-first"),
)
OVER_REST = (Reader("w1", None), Reader("w2", None))
RAW = '{"raw":"' + "x" * (POLICY.max_result_bytes - 10) + '"}'
assert len(RAW) == POLICY.max_result_bytes

some_key = st.sampled_from(KEYS)
some_reader = st.sampled_from(READERS)
some_sites = st.sampled_from([SITES, SITES, SITES[:1], SITES[1:]])
good_outcome = st.sampled_from(['{"orders":[]}', '{"orders":[1]}', Failure(5001, "logged out"), Failure(504, "late")])
outcome_at_the_limit = st.sampled_from([RAW, RAW + " ", "[]", Failure(5001)])


class QueryMachine(RuleBasedStateMachine):
    """What everybody may ask, at any time."""

    reach: ClassVar[type[QueriesInUseCases] | type[QueriesOverGrpc]]

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="queries-"))
        self.time = ManualTime()
        self.queries: Queries = self.reach(self.folder, self.time)
        self.model = QueryModel()
        self.submit("q-1", SITES[0], QueryKind.ORDER_LIST, "{}")

    def teardown(self) -> None:
        if hasattr(self, "queries"):
            self.queries.close()
            shutil.rmtree(self.folder)

    # Time and the gateway's own life

    @rule(delay=st.sampled_from([1, SECOND, TTL - 1, TTL, TTL, LIFETIME - TTL, LIFETIME]))
    def time_passes(self, delay: int) -> None:
        self.time.advance(delay * TICK)
        self.model.advance(delay)

    @precondition(lambda self: self.model.queries)
    @rule(query_id=some_key, before=st.sampled_from([0, 1]))
    def a_deadline_comes(self, query_id: str, before: int) -> None:
        """The moment at which a lease, a lifetime or a retention runs out, or a tick before."""
        query = self.model.queries.get(query_id)
        if query is not None:
            ends = {S.QUEUED: query.lives_until, S.LEASED: query.deadline}
            left = ends.get(query.status, (query.ended or 0) + RETENTION) - before - self.model.now
            self.time_passes(max(0, left))

    @precondition(lambda self: self._leased())
    @rule(readers=st.lists(some_reader, min_size=1, max_size=3))
    def nobody_answers(self, readers: list[Reader]) -> None:
        """A lease runs out and the query is taken again, perhaps until its attempts are used up."""
        for reader in readers:
            leased = [query for query in self._leased() if query.status is S.LEASED]
            self.time_passes(max([0, *(query.deadline - self.model.now for query in leased)]))
            self.lease(reader, SITES, knows_what_it_holds=False)

    @precondition(lambda self: self.queries.inside)
    @rule()
    def the_gateway_sweeps(self) -> None:
        self.queries.sweep()
        self.model.sweep()

    @rule(crash=st.booleans())
    def the_gateway_restarts(self, crash: bool) -> None:
        crash = crash and self.queries.inside
        if crash:  # a sweep writes down how far the clock is, a crash does not
            self.the_gateway_sweeps()
        self.queries.restart(crash=crash)
        self.model.sweep()

    @rule(seconds=st.sampled_from([5, 600, 4000]))
    def the_machine_restarts(self, seconds: int) -> None:
        self.queries.restart(meanwhile=lambda: self.time.reboot(timedelta(seconds=seconds)))
        self.model.reboot(seconds * SECOND)
        self.model.sweep()

    @rule(hours=st.sampled_from([-1, 1]))
    def the_wall_clock_is_set(self, hours: int) -> None:
        self.time.step_wall(timedelta(hours=hours))
        self.model.set_wall(hours * 3600 * SECOND)

    # Upstreams

    @rule(
        query_id=some_key, site=st.sampled_from(SITES), kind=st.sampled_from(QueryKind),
        params_json=st.sampled_from(["{}", '{"max_pages": 3}', '{"max_pages":99,"x":null}']),
    )  # fmt: skip
    def submit(self, query_id: str, site: str, kind: QueryKind, params_json: str) -> None:
        """Parameters are passed through, also those that no worker will take."""
        said = (query_id, site, kind, params_json)
        assert self.queries.submit(*said) == self.model.submit(*said)

    @rule(
        status=st.sampled_from([None, None, *QueryStatus]), kind=st.sampled_from([None, *QueryKind]),
        size=st.sampled_from([1, 2]), meanwhile=some_key,
    )  # fmt: skip
    def a_list_is_read_page_by_page(
        self, status: QueryStatus | None, kind: QueryKind | None, size: int, meanwhile: str
    ) -> None:
        """What is filed while somebody turns pages neither shifts nor repeats anything."""
        expected = list(self.model.listed(status, kind))
        found: list[SeenQuery] = []
        token = ""
        while True:
            page = self.queries.page(status, kind, size, token)
            assert isinstance(page, tuple)
            found += page[0]
            assert len(page[0]) == size or not page[1]
            token = page[1]
            if not token:
                break
            self.submit(meanwhile, SITES[0], QueryKind.ORDER_LIST, "{}")
            if not self.queries.inside:
                other = S.FAILED if status is None else None
                assert self.queries.page(other, kind, size, token) == BAD_FIELD
        assert found == expected

    # Workers

    @rule(reader=some_reader, sites=some_sites, knows_what_it_holds=st.booleans())
    def lease(self, reader: Reader, sites: tuple[str, ...], knows_what_it_holds: bool) -> None:
        held = frozenset(
            query.query_id for query in self.model.queries.values()
            if knows_what_it_holds and query.attempts and query.attempts[-1] == reader
        )  # fmt: skip
        said = (reader, sites, held)
        assert self.queries.lease(*said) == self.model.lease(*said)

    @precondition(lambda self: self.queries.inside)
    @rule(reader=st.sampled_from(OVER_REST))
    def lease_over_rest(self, reader: Reader) -> None:
        self.lease(reader, SITES, knows_what_it_holds=False)

    def _leased(self) -> list[Query]:
        return [query for query in self.model.queries.values() if query.attempts]

    @precondition(lambda self: self.queries.inside)
    @rule(reader=some_reader, streams=st.sampled_from([1, 2]))
    def a_stream_is_left_before_its_answer_came(self, reader: Reader, streams: int) -> None:
        """Or two of one process, of which the other may have brought it."""
        for _ in range(streams):
            self.lease(reader, SITES, knows_what_it_holds=False)
        for query in self._leased():
            if query.attempts[-1] == reader:
                said = (query.query_id, len(query.attempts))
                assert self.queries.give_back(*said) == self.model.give_back(*said)

    @precondition(lambda self: self._leased())
    @rule(which=st.integers(0, 2), outcome=good_outcome, other=good_outcome, left=st.sampled_from([None, None, 1, 0]))
    def the_holder_brings_what_it_read(self, which: int, outcome: Outcome, other: Outcome, left: int | None) -> None:
        """At some time, or as its lease runs out; after others who have no right to, and again after a lost answer."""
        query = self._leased()[which % len(self._leased())]
        worker, attempt = query.attempts[-1].worker, len(query.attempts)
        if left is not None and query.status is S.LEASED:
            self.time_passes(max(0, query.deadline - left - self.model.now))
        self._bring(query.query_id, "w2" if worker == "w1" else "w1", attempt, outcome)
        self._bring(query.query_id, worker, attempt + 1, outcome)
        if attempt > 1:
            self._bring(query.query_id, worker, attempt - 1, outcome)
            if self.queries.inside:
                self._bring(query.query_id, worker, None, outcome)
        self._bring(query.query_id, worker, attempt, outcome)
        self._bring(query.query_id, worker, attempt, outcome)
        self._bring(query.query_id, worker, attempt, other)

    @precondition(lambda self: self._leased())
    @rule(
        which=st.integers(0, 2),
        outcome=good_outcome | outcome_at_the_limit,
        attempt=st.sampled_from([None, 1, 2, 3, 4]),
        worker=st.sampled_from(["w1", "w2"]),
    )
    def anybody_brings_anything(self, which: int, outcome: Outcome, attempt: int | None, worker: str) -> None:
        query = self._leased()[which % len(self._leased())]
        if attempt is None and not self.queries.inside:
            attempt = len(query.attempts)
        self._bring(query.query_id, worker, attempt, outcome)

    @rule(outcome=good_outcome)
    def something_is_brought_for_a_query_that_is_not_there(self, outcome: Outcome) -> None:
        assert self.queries.bring("q-never-filed", "w1", 1, outcome) == NOT_FOUND
        assert self.queries.get("q-never-filed") == NOT_FOUND

    def _bring(self, query_id: str, worker: str, attempt: int | None, outcome: Outcome) -> None:
        said = (query_id, worker, attempt, outcome)
        assert self.queries.bring(*said) == self.model.bring(*said)

    # What must be the same

    @invariant()
    def the_gateway_holds_what_the_model_expects(self) -> None:
        if hasattr(self, "queries"):
            assert self.queries.page(None, None, 50, "") == (tuple(self.model.listed(None, None)), "")
            for query_id in KEYS:
                assert self.queries.get(query_id) == self.model.get(query_id)


class QueriesByUseCase(QueryMachine):
    reach = QueriesInUseCases


class QueriesByGrpc(QueryMachine):
    reach = QueriesOverGrpc
