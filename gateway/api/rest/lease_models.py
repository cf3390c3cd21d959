"""The JSON shapes of a lease: taking an order, holding it, reporting on it."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from gateway.api.rest.models import Account, AccountShown, Intent, Labels, StrictBody, TaskId, Time, WorkerId
from gateway.domain.states import OrderState, TaskStatus


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
    account: Account | None = Field(
        None, description="The account that this worker serves; absent or empty: the site's only account."
    )
    requested_by: str | None = Field(None, description="Who gave the command, at most 128 characters.")
    reason: str | None = Field(None, description="Why, at most 1,000 characters.")


OtherNumbers = Annotated[
    list[str],
    Field(
        description="Order numbers of other tasks of this site and account since a day before this one was filed, at "
        "most 1,000: leave them out when looking for this task's order on the site."
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
    account: AccountShown
    intent: Intent
    lease_expires_at: Time
    lease_count: int = Field(description="Over 1: recovered. Look at the site's order list before anything else.")
    known_state: OrderState | None = Field(description="The latest reported state; null the first time.")
    lease_token: str = Field(description="Optional in later REST calls; shown nowhere else.")
    labels: Labels
    stop_before_submit: bool = Field(
        description="True: a dry run; order nothing. Only with RAKUTEN_REST_LEASES=all is one leased over REST."
    )
    other_site_order_ids: OtherNumbers
    other_site_order_ids_truncated: OtherNumbersTruncated
