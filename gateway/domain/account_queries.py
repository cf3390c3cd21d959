"""Account queries (docs/two-queues.md#side-by-side): their vocabulary, their one transition table, their values.

Reading has no side effect, so what happens when a lease times out is the opposite of what happens to an order's;
nothing here is shared with the order queue (docs/two-queues.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from common.target import ONLY_ACCOUNT, Target, targets


class QueryStatus(StrEnum):
    """Where a query stands. The gateway decides."""

    QUEUED = "queued"
    """Waits for a worker. Moves on by a lease, or to expired when it grows too old."""
    LEASED = "leased"
    """A worker reads the site. Moves on by its result, or by `after_timeout` when the lease times out."""
    SUCCEEDED = "succeeded"
    """Ended with a result."""
    FAILED = "failed"
    """Ended with the worker's error, or with all attempts used up."""
    EXPIRED = "expired"
    """Ended: nobody answered within its lifetime."""


QUERY_ENDED = frozenset({QueryStatus.SUCCEEDED, QueryStatus.FAILED, QueryStatus.EXPIRED})


class QueryKind(StrEnum):
    """What to read."""

    ORDER_LIST = "order_list"
    ORDER_DETAIL = "order_detail"


class QueryEvent(StrEnum):
    """What can happen to a query."""

    SUBMIT = "submit"
    LEASE = "lease"
    UNDO = "undo"
    """A lease that never reached a worker is taken back, and its attempt does not count."""
    REPORT = "report"
    TIME_OUT = "time_out"
    EXPIRE = "expire"


_S = QueryStatus

QUERY_TRANSITIONS: Final[Mapping[tuple[QueryEvent, QueryStatus | None], frozenset[QueryStatus]]] = MappingProxyType(
    {
        (QueryEvent.SUBMIT, None): frozenset({_S.QUEUED}),
        (QueryEvent.LEASE, _S.QUEUED): frozenset({_S.LEASED}),
        (QueryEvent.UNDO, _S.LEASED): frozenset({_S.QUEUED}),
        (QueryEvent.REPORT, _S.LEASED): frozenset({_S.SUCCEEDED, _S.FAILED}),
        (QueryEvent.TIME_OUT, _S.LEASED): frozenset({_S.QUEUED, _S.FAILED, _S.EXPIRED}),
        (QueryEvent.EXPIRE, _S.QUEUED): frozenset({_S.EXPIRED}),
    }
)
"""(event, status before; None: no query yet) gives the statuses it may lead to. docs/two-queues.md shows it."""


def after_timeout(*, attempts: int, max_attempts: int, too_old: bool) -> QueryStatus:
    """Say where a query goes when its lease has timed out: back into the queue while that helps."""
    if attempts >= max_attempts:
        return QueryStatus.FAILED
    return QueryStatus.EXPIRED if too_old else QueryStatus.QUEUED


@dataclass(frozen=True, slots=True)
class QueryPolicy:
    """The settings that the rules of queries depend on."""

    sites: tuple[str, ...]
    lease_ttl: timedelta
    lifetime: timedelta
    max_attempts: int
    retention: timedelta
    longest_wait: timedelta
    max_params_bytes: int
    max_result_bytes: int


@dataclass(frozen=True, slots=True)
class QuerySubmission:
    """A checked request to file a query."""

    query_id: str
    site: str
    kind: QueryKind
    params_json: str
    traceparent: str = ""
    account: str = ONLY_ACCOUNT


@dataclass(frozen=True, slots=True)
class QuerySubmitted:
    """What a submission came to. `differs`: in which fields it differs from the query that existed."""

    query_id: str
    status: QueryStatus
    created: bool
    differs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryError:
    """Why a query failed or expired. `code` is the worker's, 0 where the gateway ended the query."""

    code: int
    message: str


@dataclass(frozen=True, slots=True)
class Query:
    """A query as stored. `row` orders queries by submission; the `*_us` are of the service clock."""

    row: int
    query_id: str
    site: str
    kind: QueryKind
    params_json: str
    traceparent: str
    status: QueryStatus
    lease_owner: str | None
    lease_session: str | None
    lease_expires_at: str | None
    lease_deadline_us: int | None
    attempts: int
    lifetime_ends_us: int
    created_at: str
    updated_at: str
    completed_at: str | None
    error: QueryError | None
    account: str = ONLY_ACCOUNT

    @property
    def target(self) -> Target:
        """Return the site and the account that are read."""
        return Target(self.site, self.account)


@dataclass(frozen=True, slots=True)
class QueryHold:
    """A lease of a query, as its transition writes it. `deadline_us` is of the service clock, `expires_at` UTC text."""

    worker_id: str
    session_id: str | None
    expires_at: str
    deadline_us: int


@dataclass(frozen=True, slots=True)
class QueryDetail:
    """A query with its result, which is None before success and in lists."""

    query: Query
    result_json: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing changes any more."""
        return self.query.status in QUERY_ENDED


@dataclass(frozen=True, slots=True)
class QueryLeaseRequest:
    """A worker that asks for a query. `session_id` is None over REST; `held` is what the session has in hand.

    `identity`: whose token it is.
    """

    worker_id: str
    session_id: str | None
    sites: tuple[str, ...]
    held: frozenset[str] = frozenset()
    identity: str = "anonymous"
    accounts: tuple[str, ...] = (ONLY_ACCOUNT,)

    @property
    def targets(self) -> tuple[Target, ...]:
        """Return what the worker serves: each of its accounts on each of its sites."""
        return targets(self.sites, self.accounts)


@dataclass(frozen=True, slots=True)
class QueryLease:
    """A query in a worker's hand. `lives_for` counts from when this was made."""

    query_id: str
    site: str
    kind: QueryKind
    params_json: str
    lease_expires_at: str
    attempt: int
    lives_for: timedelta
    traceparent: str
    account: str = ONLY_ACCOUNT


@dataclass(frozen=True, slots=True)
class QueryOutcome:
    """What a worker brings for one attempt: a result, or else an error. `attempt` is None only over REST.

    `identity`: whose token it is.
    """

    query_id: str
    worker_id: str
    attempt: int | None
    result_json: str | None = None
    error: QueryError | None = None
    identity: str = "anonymous"
