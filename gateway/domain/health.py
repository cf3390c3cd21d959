"""How the gateway and its workers are, and what can be wrong with a gateway that still answers
(docs/runbook.md#a-part-that-does-not-work).
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum

from common.target import ONLY_ACCOUNT
from gateway.domain.budgets import BudgetState
from gateway.domain.models import TaskDetail
from gateway.domain.notifications import ChannelState


class ProblemKind(StrEnum):
    """What does not work, or waits for a person. Each is a metric, and has a rule in deploy/prometheus-rules.yml."""

    STORE_NOT_WRITABLE = "store_not_writable"
    WORKER_OFFLINE = "worker_offline"
    TASK_UNCLAIMED = "task_unclaimed"
    DECISION_WAITING = "decision_waiting"
    ALERT_STANDING = "alert_standing"
    ALERT_WEBHOOK_FAILING = "alert_webhook_failing"
    CALLBACKS_FAILING = "callbacks_failing"
    BACKUP_TOO_OLD = "backup_too_old"
    GATEWAY_GONE = "gateway_gone"
    NO_LEADER = "no_leader"
    NOTIFICATIONS_LOST = "notifications_lost"
    NOTIFY_CHANNEL_FAILING = "notify_channel_failing"
    PROPOSAL_WAITING = "proposal_waiting"


@dataclass(frozen=True, slots=True)
class Problem:
    """One sentence for people: what is wrong, and where to look."""

    kind: ProblemKind
    message: str


@dataclass(frozen=True, slots=True)
class WorkerSeen:
    """A worker, when it was last heard of, and what it named when it last asked for an order."""

    worker_id: str
    last_seen_at: str
    silent_for: timedelta
    offline: bool
    sites: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    gateway: str = ""
    """At which gateway it was last seen waiting for an order."""


@dataclass(frozen=True, slots=True)
class GatewaySeen:
    """One of the gateways that live on the database, as it told of itself when it was last heard of.

    `waiting`: its open streams and long polls. `gone`: it has been silent for too long without having signed off.
    `here`: it is the one that answers. `silent_for` None: one of a version that does not tell.
    """

    gateway_id: str
    name: str
    version: str
    started_at: str
    last_seen_at: str | None
    silent_for: timedelta | None
    waiting: int = 0
    leads: bool = False
    gone: bool = False
    here: bool = False
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewaysSeen:
    """All gateways of the database, by name.

    `leaderless_for`: how long nobody has led the sweeps, zero while somebody does. `clock_age`: how long ago the
    service clock was last written down.
    """

    gateways: tuple[GatewaySeen, ...]
    leaderless_for: timedelta
    clock_age: timedelta


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of dispatch; `site` None: all sites."""

    site: str | None
    paused_at: str
    paused_by: str
    reason: str


@dataclass(frozen=True, slots=True)
class QueuedTask:
    """A task that has waited long. `unserved`: no worker that was heard of lately serves its target."""

    task_id: str
    site: str
    created_at: str
    age: timedelta
    account: str = ONLY_ACCOUNT
    unserved: bool = False


@dataclass(frozen=True, slots=True)
class Health:
    """How the gateway and its workers are (docs/specification.md#health).

    `active_tasks`: those of the `active_count` tasks in execution that were filed first. `budgets`: those with the
    least part left first, not all. `channels`: through which people are told of alerts, as
    far as they were tried.
    """

    queued_count: int
    queued_query_count: int
    active_count: int
    held_for_approval_count: int
    active_tasks: tuple[TaskDetail, ...]
    workers: tuple[WorkerSeen, ...]
    stale_queued_tasks: tuple[QueuedTask, ...]
    pauses: tuple[Pause, ...]
    problems: tuple[Problem, ...] = ()
    fellows: GatewaysSeen | None = None
    budgets: tuple[BudgetState, ...] = ()
    channels: tuple[ChannelState, ...] = ()

    @property
    def degraded(self) -> bool:
        """Tell whether anything is wrong, or waits for a person."""
        return bool(self.problems)

    def with_problems(self, problems: Iterable[Problem]) -> "Health":
        """Return the same with these problems."""
        return replace(self, problems=tuple(problems))

    def with_fellows(self, fellows: GatewaysSeen) -> "Health":
        """Return the same with the gateways of the database."""
        return replace(self, fellows=fellows)
