"""What the model of the query machine and the gateway are both asked, and what both answer. Times in microseconds."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Protocol

from gateway.domain.account_queries import QueryKind, QueryPolicy, QueryStatus
from tests.gateway.support.manual_time import TICK
from tests.properties.order_terms import Refused

SITES = ("rakuten", "sandbox")
POLICY = QueryPolicy(
    sites=SITES,
    lease_ttl=timedelta(seconds=180),
    lifetime=timedelta(seconds=900),
    max_attempts=3,
    retention=timedelta(days=7),
    longest_wait=timedelta(seconds=60),
    max_params_bytes=256 * 1024,
    max_result_bytes=1024,
)
TTL, LIFETIME, RETENTION = POLICY.lease_ttl // TICK, POLICY.lifetime // TICK, POLICY.retention // TICK


@dataclass(frozen=True)
class Reader:
    """A worker's process that reads. Over REST it has no session."""

    worker: str
    session: str | None


@dataclass(frozen=True)
class Failure:
    """Why a worker could not read. `code` 0 without a message: the gateway's own words, which are free."""

    code: int
    message: str = ""


Outcome = str | Failure
"""What a worker brings: a result as JSON text, or why there is none."""


@dataclass(frozen=True)
class Taken:
    """A query as its worker gets it."""

    query_id: str
    site: str
    kind: QueryKind
    params_json: str
    attempt: int
    lives: int


@dataclass(frozen=True)
class SeenQuery:
    """A query as anybody can read it."""

    query_id: str
    site: str
    kind: QueryKind
    params_json: str
    status: QueryStatus
    owner: str | None
    attempts: int
    has_ended: bool
    error: Failure | None
    result_json: str | None = field(default=None)

    def in_a_list(self) -> "SeenQuery":
        """Lists leave the result out."""
        return replace(self, result_json=None)


Page = tuple[tuple[SeenQuery, ...], str]
"""Queries, the newest first, and the token of the next page, empty on the last."""


class Queries(Protocol):
    """The gateway, however it is reached."""

    inside: bool
    """Whether also that can be asked which no gRPC client can: REST leases, giving back, sweeps, crashes."""

    def submit(self, query_id: str, site: str, kind: QueryKind, params_json: str) -> tuple[QueryStatus, bool]:
        """Answer where the query stands, and whether it is new."""
        ...

    def lease(self, reader: Reader, sites: tuple[str, ...], held: frozenset[str]) -> Taken | None: ...
    def bring(self, query_id: str, worker: str, attempt: int | None, outcome: Outcome) -> QueryStatus | Refused: ...
    def give_back(self, query_id: str, attempt: int) -> bool: ...
    def sweep(self) -> None: ...
    def restart(self, *, crash: bool = False, meanwhile: Callable[[], None] = lambda: None) -> None:
        """End the process and start another, which sweeps at once; `meanwhile` is what happens in between."""
        ...

    def get(self, query_id: str) -> SeenQuery | Refused: ...
    def page(self, status: QueryStatus | None, kind: QueryKind | None, size: int, token: str) -> Page | Refused: ...
    def close(self) -> None: ...
