"""What can be wrong with a gateway that still answers (docs/runbook.md#a-part-that-does-not-work)."""

from dataclasses import dataclass
from enum import StrEnum


class ProblemKind(StrEnum):
    """What does not work, or waits for a person. Each is a figure, and has a rule in deploy/prometheus-rules.yml."""

    STORE_NOT_WRITABLE = "store_not_writable"
    WORKER_OFFLINE = "worker_offline"
    TASK_UNCLAIMED = "task_unclaimed"
    DECISION_WAITING = "decision_waiting"
    ALERT_STANDING = "alert_standing"
    ALERT_WEBHOOK_FAILING = "alert_webhook_failing"
    CALLBACKS_FAILING = "callbacks_failing"
    BACKUP_TOO_OLD = "backup_too_old"


@dataclass(frozen=True, slots=True)
class Problem:
    """One sentence for people: what is wrong, and where to look."""

    kind: ProblemKind
    message: str
