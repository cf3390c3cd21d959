"""The shapes of the documented JSON contract, as the OpenAPI page tells them; request bodies are checked by them.

Types are checked strictly: "1" is no number and 1 no text. Limits of single fields stand in gateway/domain/fields.py,
the same as on every transport. Unknown fields are ignored.
"""

from enum import StrEnum
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gateway.domain.health import ProblemKind
from gateway.domain.states import OrderState, Placement, TaskStatus

T = TypeVar("T")

Time = Annotated[str, Field(description="RFC 3339, UTC.", examples=["2026-07-27T09:15:00.000000Z"])]
TaskId = Annotated[
    str,
    Field(
        description="The idempotency key: 1 to 128 of `A-Z a-z 0-9 . _ -`, first a letter or digit; not `lease` or "
        "`discovery`.",
        examples=["po-20260727-0001"],
    ),
]
WorkerId = Annotated[
    str, Field(description="1 to 128 of `A-Z a-z 0-9 . _ -`, first a letter or digit.", examples=["local-01"])
]
_INTENT: dict[str, JsonValue] = {
    "item_url": "https://shop.example/item/code/",
    "quantity": 1,
    "max_total_yen": 30000,
}
Intent = Annotated[
    dict[str, Any],
    Field(
        description="Passed through value for value; the worker defines its structure.",
        examples=[_INTENT],
    ),
]


class Envelope(BaseModel, Generic[T]):
    """The envelope of every successful answer."""

    success: Literal[True]
    msg: str = Field(examples=["ok"])
    data: T
    code: Literal[0]


class Failure(BaseModel):
    """The envelope of every refusal."""

    success: Literal[False]
    msg: str = Field(description="What was refused and what to do next, for people.", examples=["site: is required"])
    data: None = None
    code: int = Field(description="6001 to 6006, else the HTTP status itself.", examples=[6001])


class StrictBody(BaseModel):
    """A request body. A type is what it says; unknown fields are ignored."""

    model_config = ConfigDict(strict=True)


class Submit(StrictBody):
    """What to buy."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"task_id": "po-20260727-0001", "site": "rakuten", "intent": _INTENT}]}
    )

    task_id: TaskId | None = Field(
        None, description="Send your own: without one a lost answer must not be retried. Else the gateway makes one."
    )
    site: str = Field(description="One of the configured sites.", examples=["rakuten"])
    intent: Intent
    callback_url: str | None = Field(
        None,
        description="Where to POST the end of the task; absolute http or https, at most 2,000 characters.",
        examples=["https://upstream.example/callbacks/orders"],
    )


class Submitted(BaseModel):
    """The task that now exists."""

    task_id: TaskId
    status: TaskStatus
    created: bool = Field(description="False if the task existed; then nothing was changed.")
    intent_matches: bool = Field(description="False if the task existed with another intent; the first one stands.")
    differs: list[str] = Field(
        description="In which of `site`, `intent`, `callback_url` it differs from the task that existed."
    )


class Renew(StrictBody):
    """Who renews; may stand in the query instead."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"worker_id": "local-01"}]})

    worker_id: WorkerId | None = None
    lease_token: str | None = Field(None, description="Required if the lease came over gRPC; must match where given.")
    with_other_orders: bool = Field(
        False, description="True: the answer brings the order numbers of other tasks, as they are known now."
    )


class Reclaim(StrictBody):
    """Who reclaims; may stand in the query instead. And on whose command, for the history."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"worker_id": "local-01", "requested_by": "ann", "reason": "its worker died"}]}
    )

    worker_id: WorkerId | None = None
    requested_by: str | None = Field(None, description="Who gave the command, at most 128 characters.")
    reason: str | None = Field(None, description="Why, at most 1,000 characters.")


OtherNumbers = Annotated[
    list[str],
    Field(
        description="Order numbers of the site's other tasks since a day before this one was filed, at most 1,000: "
        "leave them out when looking for this task's order on the site."
    ),
]
OtherNumbersTruncated = Annotated[
    bool,
    Field(
        description="True if not all are known, because there were more, or another task may have an order whose "
        "number nobody has told: then a match on the site proves nothing."
    ),
]


class Renewed(BaseModel):
    """How long the lease lives now."""

    task_id: TaskId
    lease_expires_at: Time
    lease_count: int
    other_site_order_ids: OtherNumbers | None = Field(None, description="Only with `with_other_orders`.")
    other_site_order_ids_truncated: OtherNumbersTruncated | None = Field(
        None, description="Only with `with_other_orders`."
    )


class EndWord(StrEnum):
    """How a task ends; some write it where a terminal report's order state stands."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    NEEDS_HUMAN = "needs_human"


class Report(StrictBody):
    """What happened to the order."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"worker_id": "local-01", "state": "in_cart", "detail": "two of them"}]}
    )

    worker_id: WorkerId
    lease_token: str | None = Field(None, description="Required if the lease came over gRPC; must match where given.")
    state: Annotated[OrderState, Field(strict=False)] | Annotated[EndWord, Field(strict=False)] | None = Field(
        None,
        description="Optional only with `terminal`: the latest known state then, else `created`. With `terminal` also "
        "succeeded, failed or needs_human: the same as that `terminal_status` without a state.",
    )
    payable_yen: int | None = Field(None, description="Amount to pay, at least 0.", examples=[12800])
    pay_deadline: str | None = Field(
        None, description="RFC 3339; any offset, but not without one.", examples=["2026-07-30T14:59:00Z"]
    )
    site_order_id: str | None = Field(None, description="The site's order number, 1 to 128 printable characters.")
    evidence_ref: str | None = Field(
        None,
        description="Relative path without extension, at most 300 characters.",
        examples=["po-20260727-0001/03-order-confirm"],
    )
    detail: str | None = Field(None, description="For people, at most 4,000 characters.")
    error_code: int | None = Field(None, description="0 to 99999.", examples=[5004])
    terminal: bool | None = Field(None, description="True ends the task.")
    terminal_status: TaskStatus | None = Field(
        None,
        strict=False,
        description="succeeded, failed or needs_human; absent: paid gives succeeded, cancelled failed, else "
        "needs_human. Only with `terminal`.",
    )


class Reported(BaseModel):
    """What the gateway made of it."""

    task_id: TaskId
    status: TaskStatus
    recorded: bool = Field(description="False if this state had been reported before; its row was overwritten.")


class Lease(BaseModel):
    """A task in a worker's hand."""

    task_id: TaskId
    site: str
    intent: Intent
    lease_expires_at: Time
    lease_count: int = Field(description="Over 1: recovered. Look at the site's order list before anything else.")
    known_state: OrderState | None = Field(description="The latest reported state; null the first time.")
    lease_token: str = Field(description="Optional in later REST calls; shown nowhere else.")
    other_site_order_ids: OtherNumbers
    other_site_order_ids_truncated: OtherNumbersTruncated


class ReportRow(BaseModel):
    """What is known of one order state."""

    state: OrderState
    payable_yen: int | None
    pay_deadline: Time | None
    site_order_id: str | None
    evidence_ref: str | None
    detail: str
    error_code: int | None
    reported_at: Time = Field(description="When this state was first recorded.")


class Task(BaseModel):
    """A task and everything known of it."""

    task_id: TaskId
    site: str
    intent: Intent
    callback_url: str | None
    status: TaskStatus
    lease_owner: str | None = Field(description="worker_id of the holder; null without a lease.")
    lease_expires_at: Time | None = Field(description="Null without a lease.")
    lease_count: int
    created_at: Time
    updated_at: Time
    latest_state: OrderState | None
    reports: list[ReportRow] = Field(description="Oldest first.")
    submit_permitted_at: Time | None
    placement: Placement = Field(description="Whether an order can exist on the site.")


class TaskList(BaseModel):
    """One slice of the tasks, newest first."""

    items: list[Task]
    total: int = Field(description="How many tasks match in all.")
    limit: int = Field(description="As asked for; where the slice was cut short by its size, how many items it has.")
    offset: int
    next_offset: int | None = Field(description="Where the next slice begins; null on the last one.")


class Worker(BaseModel):
    """A worker and when it was last heard of."""

    worker_id: str
    last_seen_at: Time
    last_seen_seconds: float


class QueuedTask(BaseModel):
    """A task that has waited long."""

    task_id: str
    site: str
    created_at: Time
    age_seconds: float


class Pause(BaseModel):
    """A pause of dispatch."""

    site: str | None = Field(description="Null: all sites.")
    paused_at: Time
    paused_by: str
    reason: str


class HealthProblem(BaseModel):
    """Something that does not work, or waits for a person."""

    kind: ProblemKind
    message: str = Field(description="One sentence for people: what is wrong, and where to look.")


class Health(BaseModel):
    """How the gateway and its workers are."""

    status: Literal["ok", "degraded"] = Field(
        description="`degraded` when something does not work or waits for a person; `problems` say what."
    )
    queued_count: int
    queued_query_count: int
    active_tasks: list[Task]
    workers: list[Worker]
    offline_workers: list[str]
    stale_queued_tasks: list[QueuedTask]
    paused: bool = Field(description="True if dispatch is paused for any site.")
    pauses: list[Pause]
    problems: list[HealthProblem]
