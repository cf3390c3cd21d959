"""The JSON shapes of account queries and of the order catalogue (docs/specification.md#account-queries)."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gateway.api.rest.models import Account, AccountShown, StrictBody, Time, WorkerId
from gateway.domain.account_queries import QueryKind, QueryStatus
from gateway.domain.catalog import DiscrepancyKind
from gateway.domain.states import OrderState

QueryId = Annotated[
    str,
    Field(
        description="1 to 128 of `A-Z a-z 0-9 . _ -`, first a letter or digit; not `lease` or `discovery`.",
        examples=["aq-20260816-0001"],
    ),
]
Params = Annotated[
    dict[str, Any],
    Field(
        description="order_list: `since` (RFC 3339) and `max_pages` (1 to 20), both optional. order_detail: "
        "`order_number`. The worker checks them.",
        examples=[{"since": "2026-08-01T00:00:00Z", "max_pages": 3}],
    ),
]


class SubmitQuery(StrictBody):
    """What to read."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"site": "rakuten", "kind": "order_list", "params": {"max_pages": 3}}]}
    )

    query_id: QueryId | None = Field(None, description="Else the gateway makes one.")
    site: str | None = Field(None, description="Absent: `rakuten`.", examples=["rakuten"])
    account: Account | None = Field(None, description="Absent or empty: the site's only account.")
    kind: QueryKind = Field(strict=False)
    params: Params | None = Field(None, description="Absent: `{}`.")


class SubmittedQuery(BaseModel):
    """The query that now exists."""

    query_id: QueryId
    status: QueryStatus
    created: bool = Field(description="False if the query existed; then nothing was changed.")
    differs: list[str] = Field(
        description="In which of `site`, `account`, `kind`, `params` it differs from the query that existed; the first "
        "ones stand."
    )


class QueryLease(BaseModel):
    """A query in a worker's hand."""

    query_id: QueryId
    site: str
    account: AccountShown
    kind: QueryKind
    params: dict[str, Any]
    lease_expires_at: Time
    attempt: int = Field(description="From 1; quote it with the result.")


class QueryResult(StrictBody):
    """What came of one attempt."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"worker_id": "local-01", "success": False, "attempt": 1, "error_message": "logged out"}]
        }
    )

    worker_id: WorkerId
    success: bool
    attempt: int | None = Field(
        None, ge=1, description="Absent: taken only if this worker has held exactly one attempt."
    )
    result: dict[str, Any] | None = Field(None, description="Required on success; 1 MiB at most (configurable).")
    error_code: int | None = Field(None, description="0 to 99999; absent: 0.", examples=[5001])
    error_message: str | None = Field(None, description="Required on failure, 1 to 4,000 characters.")


class ResultTaken(BaseModel):
    """Where the query stands now."""

    query_id: QueryId
    status: QueryStatus


class QueryError(BaseModel):
    """Why a query failed or expired."""

    code: int = Field(description="The worker's code; 0 where the gateway ended the query.")
    message: str


class Query(BaseModel):
    """A query and its result."""

    query_id: QueryId
    site: str
    account: AccountShown
    kind: QueryKind
    params: dict[str, Any]
    status: QueryStatus
    lease_owner: str | None
    lease_expires_at: Time | None
    attempts: int
    created_at: Time
    updated_at: Time
    completed_at: Time | None
    result: dict[str, Any] | None = Field(description="Only when succeeded; null in lists.")
    error: QueryError | None = Field(description="Only when failed or expired.")


class QueryList(BaseModel):
    """One slice of the queries, newest first, without their results."""

    items: list[Query]
    total: int
    limit: int = Field(description="As asked for; where the slice was cut short by its size, how many items it has.")
    offset: int
    next_offset: int | None = Field(description="Where the next slice begins; null on the last one.")


class CatalogOrder(BaseModel):
    """An order as the site shows it."""

    site: str
    account: AccountShown
    order_number: str
    shop_id: str
    shop_name: str
    order_date: Time | None
    delivery_status: str = Field(description="The site's stage code, else the stage label; empty before the detail.")
    order_state: OrderState | None
    discovered_at: Time
    detail_fetched_at: Time | None
    last_seen_at: Time


class CatalogList(BaseModel):
    """One slice of the catalogue, latest seen first."""

    items: list[CatalogOrder]
    total: int
    limit: int = Field(description="As asked for; where the slice was cut short by its size, how many items it has.")
    offset: int
    next_offset: int | None = Field(description="Where the next slice begins; null on the last one.")


class Discrepancy(BaseModel):
    """One difference between the site and the tasks, for a person to look at."""

    kind: DiscrepancyKind
    site: str
    account: AccountShown
    order_number: str
    task_id: str | None = Field(description="The task that told this number; null for `unknown_to_tasks`.")
    task_state: OrderState | None
    site_state: OrderState | None
    explanation: str
    found_at: Time


class DiscrepancyList(BaseModel):
    """One slice of the differences, newest first."""

    items: list[Discrepancy]
    total: int
    limit: int = Field(description="As asked for; where the slice was cut short by its size, how many items it has.")
    offset: int
    next_offset: int | None = Field(description="Where the next slice begins; null on the last one.")


class Discover(StrictBody):
    """Where to look."""

    site: str | None = Field(None, description="Absent: the first configured one.", examples=["rakuten"])
    account: Account | None = Field(None, description="Absent or empty: the site's only account.")
