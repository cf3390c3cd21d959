"""Alerts on their way to people: what is urgent, to which channels it goes, and when (docs/notifications.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from gateway.domain.models import AlertKind

URGENT: Final = frozenset(kind for kind in AlertKind if kind.is_about_tasks) - {AlertKind.TASK_UNCLAIMED} | {
    AlertKind.BUDGET_USED_UP,
    AlertKind.RESUME_PROPOSED,
}
"""What waits for a person's decision, or stops every order. The rest is told in digests."""

MAX_DIGEST: Final = 500
"""So many lines of a digest are gathered for a channel; what comes beyond stands in `order-gateway alerts` alone."""

_LONGEST_LINE: Final = 500


class Urgency(StrEnum):
    """When a channel is told: at once, if nobody has decided in time, or together with others."""

    NOW = "now"
    ESCALATION = "escalation"
    DIGEST = "digest"


@dataclass(frozen=True, slots=True)
class NotifyPolicy:
    """Who is told of alerts. `escalation`: the channels of those who are told if nobody has decided in time."""

    channels: tuple[str, ...] = ()
    escalation: tuple[str, ...] = ()
    escalate_after: timedelta = timedelta(minutes=15)
    digest_every: timedelta = timedelta(hours=1)
    public_url: str = ""

    @property
    def all_channels(self) -> tuple[str, ...]:
        """Return every channel."""
        return (*self.channels, *self.escalation)

    def link(self, task_id: str | None) -> str:
        """Return where the console shows a task, or what is to decide; empty where nobody said where it is."""
        if not self.public_url:
            return ""
        return f"{self.public_url}/console" + ("" if task_id is None else f"/tasks/{task_id}")


@dataclass(frozen=True, slots=True)
class Pending:
    """What a channel is still to be told of an alert; `since_us`: from when on, by the service clock."""

    notification_id: int
    urgency: Urgency
    edge: str
    kind: AlertKind
    subject: str
    task_id: str | None
    message: str
    raised_at: str
    cleared_at: str | None
    attempts: int
    since_us: int


@dataclass(frozen=True, slots=True)
class Message:
    """What a person reads."""

    title: str
    body: str


TEST: Final = Message("order-gateway: a test", "This is a test: nothing has happened, and nothing is to be done.")


@dataclass(frozen=True, slots=True)
class Told:
    """What a channel made of a message: `trouble` None, it was taken; else what came instead."""

    channel: str
    trouble: str | None


@dataclass(frozen=True, slots=True)
class ChannelState:
    """How a channel answered last, and how many tries in a row it has not taken."""

    channel: str
    failures: int
    told: str
    tried_at: str


def text_of(lines: Sequence[str]) -> str:
    """Return lines as one text: each bounded, without what a terminal or a browser would not show as itself."""
    return "\n".join(_shown(line) for line in lines if line)


def _shown(line: str) -> str:
    shown = "".join(character if character.isprintable() else " " for character in line)
    return shown if len(shown) <= _LONGEST_LINE else f"{shown[: _LONGEST_LINE - 1]}…"
