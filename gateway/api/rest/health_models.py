"""The JSON shapes of the gateway's health."""

from typing import Literal

from pydantic import BaseModel, Field

from gateway.api.rest.models import AccountShown, Task, Time
from gateway.domain.budgets import BudgetPeriod
from gateway.domain.health import ProblemKind


class Worker(BaseModel):
    """A worker and when it was last heard of."""

    worker_id: str
    last_seen_at: Time
    last_seen_seconds: float
    sites: list[str] = Field(description="Those that it named when it last asked for an order.")
    accounts: list[str] = Field(description="Those that it named then; the empty one is a site's only account.")
    gateway: str = Field(description="At which gateway it was last seen waiting for an order; empty: at none yet.")


class QueuedTask(BaseModel):
    """A task that has waited long."""

    task_id: str
    site: str
    account: AccountShown
    unserved: bool = Field(description="True if no worker that was heard of lately serves its site and account.")
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


class Gateway(BaseModel):
    """A gateway process that lives on the database, or died there within the last day."""

    gateway_id: str = Field(description="New with each start.")
    name: str = Field(description="RAKUTEN_GATEWAY_NAME; empty: one of an older version.")
    version: str
    started_at: Time
    last_seen_at: Time | None = Field(description="It tells of itself every five seconds.")
    last_seen_seconds: float | None
    waiting_count: int = Field(description="Streams and long polls that were open there then.")
    leads: bool = Field(description="True if it runs the sweeps for all.")
    gone: bool = Field(description="True if it has been silent for 30 s without having signed off.")
    answers: bool = Field(description="True for the one that answers.")
    problems: list[HealthProblem] = Field(description="What did not work there and may have worked at others.")


class Budget(BaseModel):
    """A budget that stands, and what of it is used in its period of now."""

    budget_id: str
    site: str | None = Field(description="It counts orders on this site; null: on any.")
    account: str | None = Field(description="It counts orders with this account; null: with any.")
    identity: str | None = Field(description="It counts orders that the token of this name filed; null: any.")
    period: BudgetPeriod
    limit_yen: int
    reserved_yen: int = Field(description="By permits of whose orders no amount is known yet.")
    settled_yen: int = Field(description="Paid, or to be paid.")
    left_yen: int
    renews_at: Time


class Health(BaseModel):
    """How the gateway and its workers are."""

    status: Literal["ok", "degraded"] = Field(
        description="`degraded` when something does not work or waits for a person; `problems` say what."
    )
    queued_count: int
    queued_query_count: int
    active_tasks: list[Task] = Field(description="At most 100, those filed first at first.")
    active_count: int = Field(description="How many tasks are in execution.")
    held_for_approval_count: int = Field(description="How many of the queued tasks wait for an approval.")
    workers: list[Worker]
    offline_workers: list[str]
    stale_queued_tasks: list[QueuedTask]
    paused: bool = Field(description="True if dispatch is paused for any site.")
    pauses: list[Pause]
    problems: list[HealthProblem]
    budgets: list[Budget] = Field(description="Those with the least part left first, at most 50.")
    gateways: list[Gateway] = Field(description="By name, at most 50; with SQLite it is the one.")
