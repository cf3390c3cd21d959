"""The shapes of the documented JSON contract, as the OpenAPI page tells them; request bodies are checked by them.

Types are checked strictly: "1" is no number and 1 no text. Limits of single fields stand in gateway/domain/fields.py,
the same as on every transport. Unknown fields are ignored.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from gateway.domain.approvals import ApprovalReason, Verdict
from gateway.domain.fields import MAX_BATCH
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
Account = Annotated[
    str, Field(description="1 to 64 of `A-Z a-z 0-9 . _ -`, first a letter or digit.", examples=["buyer-1"])
]
AccountShown = Annotated[str, Field(description="The account on the site; empty: the site's only account.")]
Labels = Annotated[dict[str, str], Field(description="The upstream's own labels; empty: none.")]
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
    account: Account | None = Field(
        None, description="The account on the site that shall order. Absent or empty: the site's only account."
    )
    intent: Intent
    callback_url: str | None = Field(
        None,
        description="Where to POST the end of the task; absolute http or https, at most 2,000 characters.",
        examples=["https://upstream.example/callbacks/orders"],
    )
    labels: dict[str, str] | None = Field(
        None,
        description="At most 16 labels of your own, by which the task is found again. "
        "A key is 1 to 64 of `A-Z a-z 0-9 . _ - /`, a value at most 256 characters.",
        examples=[{"team": "purchasing", "project": "2026/07"}],
    )
    max_total_yen: int | None = Field(
        None,
        description="The most that the order may cost, everything included, in yen, at least 1. The worker gets no "
        "leave to order anything dearer.",
        examples=[30000],
    )
    not_before: Time | None = Field(None, description="Hand it to no worker before this moment. With an offset.")
    not_after: Time | None = Field(
        None,
        description="The last moment at which a worker gets leave to order; a task that nobody has taken by then ends "
        "as failed. With an offset, not before `not_before`.",
    )
    stop_before_submit: bool = Field(
        False, description="True: a dry run, which ends at the confirmation page; nothing is ever ordered for it."
    )
    requires_approval: bool = Field(
        False, description="True: it is handed to no worker until somebody else than who files it has approved it."
    )


class Submitted(BaseModel):
    """The task that now exists."""

    task_id: TaskId
    status: TaskStatus
    created: bool = Field(description="False if the task existed; then nothing was changed.")
    intent_matches: bool = Field(description="False if the task existed with another intent; the first one stands.")
    differs: list[str] = Field(
        description="In which of `site`, `account`, `intent`, `callback_url`, `labels`, `max_total_yen`, "
        "`not_before`, `not_after`, `stop_before_submit`, `requires_approval` it differs from the task that existed."
    )
    same_intent_as: TaskId | None = Field(
        description="Another task of this site and account with an equal intent, filed lately and not failed; null: "
        "there was none. This one is filed all the same."
    )
    held_for_approval: bool = Field(description="True: it waits until somebody has approved it.")


class SubmitBatch(StrictBody):
    """What to buy, many times."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"orders": [{"task_id": "po-20260727-0002", "site": "rakuten", "intent": _INTENT}]}]
        }
    )

    orders: list[Any] = Field(
        description=f"1 to {MAX_BATCH} orders, each as `POST /api/orders` takes it.",
        json_schema_extra={
            "items": {"$ref": f"#/components/schemas/{Submit.__name__}"}, "minItems": 1, "maxItems": MAX_BATCH,
        },
    )  # fmt: skip


class BatchResult(BaseModel):
    """What became of one order: the envelope that `POST /api/orders` would answer, and the field that was refused."""

    success: bool
    msg: str = Field(examples=["ok"])
    data: Submitted | None
    code: int = Field(description="0, or the code of the refusal.")
    field: str | None = Field(description="The refused field, such as `orders[17].site`; null on success.")


class BatchSubmitted(BaseModel):
    """What became of each order."""

    results: list[BatchResult] = Field(description="As many as there were orders, in their order.")


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


class TermsItem(BaseModel):
    """An item on the confirmation page."""

    item_url: str
    variant_id: str = Field(description="Empty: the item has no variants.")
    quantity: int
    unit_price_yen: int | None = Field(description="Null where the page does not show it.")


class Terms(BaseModel):
    """What the confirmation page asks for, as the worker read it before the click."""

    payable_yen: int
    items: list[TermsItem]
    digest: str = Field(description="SHA-256 of the terms, see proto/ordergateway/v1/orders.proto.")


class Approval(BaseModel):
    """What somebody decided about a task that needs an approval."""

    verdict: Verdict
    decided_by: str
    decided_at: Time
    reason: str
    max_total_yen: int | None = Field(description="The most that the order may cost; null if it was denied.")
    valid_until: Time | None = Field(description="The last moment at which a permit may use it; null if it was denied.")
    used_by_lease: int | None = Field(description="Number of the lease whose permit used it; null: none did.")
    ended_at: Time | None = Field(description="When it was used or ended otherwise; null while it stands.")


class Task(BaseModel):
    """A task and everything known of it."""

    task_id: TaskId
    site: str
    account: AccountShown
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
    labels: Labels
    max_total_yen: int | None = Field(description="The most that the order may cost; null: the submission sets no cap.")
    terms: Terms | None = Field(
        description="Of the last submit permit; where none was granted, those last shown. Null: none were shown."
    )
    not_before: Time | None = Field(description="Null: it may be handed out at once.")
    not_after: Time | None = Field(description="Null: any time is good.")
    stop_before_submit: bool = Field(description="True: a dry run.")
    cancel_requested_at: Time | None = Field(
        description="When a cancel was requested while a worker had it in hand; no permit is granted from then on."
    )
    same_intent_as: TaskId | None = Field(description="Another task that wanted the same when this one was filed.")
    submitted_by: str | None = Field(description="The identity that filed it; null: it was not kept then.")
    requires_approval: bool = Field(description="True: no worker gets leave to order without somebody's approval.")
    approval_reasons: list[ApprovalReason] = Field(description="Why; empty: it needs none.")
    held_for_approval: bool = Field(description="True: it waits in the queue until it is approved.")
    approval: Approval | None = Field(description="What was last decided; null: nothing yet, or it needs none.")


class TaskList(BaseModel):
    """One slice of the tasks, newest first."""

    items: list[Task]
    total: int = Field(description="How many tasks match in all.")
    limit: int = Field(description="As asked for; where the slice was cut short by its size, how many items it has.")
    offset: int
    next_offset: int | None = Field(description="Where the next slice begins; null on the last one, and in a search.")
    total_is_exact: bool = Field(True, description="False in a search, whose `total` counts this page alone.")
    next_page_token: str | None = Field(
        None, description="In a search alone: the `page_token` of the next page; null on the last one."
    )
