"""The JSON shapes of the gateway's health."""

from typing import Literal

from pydantic import BaseModel, Field

from gateway.api.rest.models import AccountShown, Task, Time
from gateway.domain.health import ProblemKind


class Worker(BaseModel):
    """A worker and when it was last heard of."""

    worker_id: str
    last_seen_at: Time
    last_seen_seconds: float
    sites: list[str] = Field(description="Those that it named when it last asked for an order.")
    accounts: list[str] = Field(description="Those that it named then; the empty one is a site's only account.")


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


class Health(BaseModel):
    """How the gateway and its workers are."""

    status: Literal["ok", "degraded"] = Field(
        description="`degraded` when something does not work or waits for a person; `problems` say what."
    )
    queued_count: int
    queued_query_count: int
    active_tasks: list[Task] = Field(description="At most 100, those filed first at first.")
    active_count: int = Field(description="How many tasks are in execution.")
    workers: list[Worker]
    offline_workers: list[str]
    stale_queued_tasks: list[QueuedTask]
    paused: bool = Field(description="True if dispatch is paused for any site.")
    pauses: list[Pause]
    problems: list[HealthProblem]
