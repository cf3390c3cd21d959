"""What people are told of alerts, channel by channel (docs/notifications.md): filed, due, put off, given up.

A notification is filed in the transaction that notes that the log has told the alert, and goes in the one that notes
that the channel has taken it: whatever a process dies of in between, it is told, at worst twice.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from common.target import Target
from gateway.domain.health import Problem, ProblemKind
from gateway.domain.instant import Instant, microseconds
from gateway.domain.models import AlertKind, Policy, TaskDetail
from gateway.domain.notifications import (
    MAX_DIGEST,
    URGENT,
    ChannelState,
    Message,
    NotifyPolicy,
    Pending,
    Urgency,
    text_of,
)
from gateway.operations.alert_outbox import FIRST_DELAY, GIVE_UP_AFTER, LONGEST_DELAY
from gateway.operations.decisions import decision_about
from gateway.store import notifications, tasks
from gateway.store.alert_deliveries import Notice
from gateway.store.port import ReadTransaction, Transaction

FAILED_TRIES: Final = 3
"""After so many tries in a row that were not taken a channel counts as failing."""

_LINES: Final = 20
_AT_ONCE: Final = 50
_EACH_BY_ITSELF: Final = 5
"""Of more urgent ones that are due at once a channel is told in one message: nobody reads a flood."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message for a channel, and what it tells."""

    message: Message
    told: tuple[Pending, ...]


def file_notifications(tx: Transaction, now: Instant, notify: NotifyPolicy, notices: Sequence[Notice]) -> None:
    """File for each channel what it is to be told of these notices, and when."""
    for notice in notices:
        urgent = notice.kind in URGENT and notice.edge == "raised"
        for channel in notify.channels:
            if urgent:
                notifications.add(tx, channel, Urgency.NOW, notice.alert_id, notice.edge, now.elapsed_us)
            else:
                _add_to_digest(tx, now, notify, channel, notice)
        if urgent:
            due_us = now.elapsed_us + microseconds(notify.escalate_after)
            for channel in notify.escalation:
                notifications.add(tx, channel, Urgency.ESCALATION, notice.alert_id, notice.edge, due_us)


def next_message(tx: Transaction, now: Instant, policy: Policy, notify: NotifyPolicy, channel: str) -> Outgoing | None:
    """Return what a channel is to be told now, the most urgent first; None if there is nothing.

    What has been decided meanwhile needs no urgent word any more, and is taken out.
    """
    for urgency in (Urgency.NOW, Urgency.ESCALATION):
        while found := notifications.due(tx, now, channel, urgency, _AT_ONCE):
            standing = [pending for pending in found if pending.cleared_at is None]
            if len(standing) > _EACH_BY_ITSELF:
                return Outgoing(_many(notify, urgency, standing), tuple(standing))
            if standing:
                return Outgoing(_urgent(tx, now, policy, notify, standing[0]), (standing[0],))
            for pending in found:
                notifications.remove(tx, pending.notification_id)
    gathered = tuple(notifications.due(tx, now, channel, Urgency.DIGEST, MAX_DIGEST))
    return Outgoing(_digest(notify, gathered), gathered) if gathered else None


def taken(tx: Transaction, now: Instant, channel: str, sent: Outgoing) -> None:
    """Note that a channel has taken a message."""
    for pending in sent.told:
        notifications.remove(tx, pending.notification_id)
    notifications.note(tx, now, channel, "taken", taken=True)


def not_taken(tx: Transaction, now: Instant, channel: str, sent: Outgoing, told: str) -> int:
    """Put a message off that a channel has not taken, longer each time; return how much of it is given up instead."""
    given_up = 0
    for pending in sent.told:
        if now.elapsed_us - pending.since_us >= microseconds(GIVE_UP_AFTER):
            notifications.remove(tx, pending.notification_id)
            given_up += 1
            continue
        delay = min(FIRST_DELAY * 2 ** min(pending.attempts, 16), LONGEST_DELAY)
        notifications.put_off(tx, pending.notification_id, now.elapsed_us + microseconds(delay))
    notifications.note(tx, now, channel, told, taken=False)
    return given_up


def note_test(tx: Transaction, now: Instant, channel: str, told: str | None) -> None:
    """Note how a channel answered a test; `told` None: it has taken it."""
    notifications.note(tx, now, channel, told or "taken", taken=told is None)


def channel_states(tx: ReadTransaction, configured: Sequence[str]) -> tuple[ChannelState, ...]:
    """Return how each configured channel answered last, as far as it was ever tried."""
    return tuple(state for state in notifications.channels(tx) if state.channel in configured)


def problems_of_channels(states: Sequence[ChannelState]) -> Iterator[Problem]:
    """Yield a problem for each channel that does not take what it is told."""
    for state in states:
        if state.failures >= FAILED_TRIES:
            yield Problem(
                ProblemKind.NOTIFY_CHANNEL_FAILING,
                f"the channel {state.channel} has not taken the last {state.failures} messages: {state.told}; try "
                "`order-gateway notify test` (RAKUTEN_NOTIFY_URLS)",
            )


def _add_to_digest(tx: Transaction, now: Instant, notify: NotifyPolicy, channel: str, notice: Notice) -> None:
    count, due_us = notifications.digest_begun(tx, channel)
    if count < MAX_DIGEST:
        at = now.elapsed_us + microseconds(notify.digest_every) if due_us is None else due_us
        notifications.add(tx, channel, Urgency.DIGEST, notice.alert_id, notice.edge, at)


def _urgent(tx: ReadTransaction, now: Instant, policy: Policy, notify: NotifyPolicy, pending: Pending) -> Message:
    about = f"task {pending.task_id}" if pending.task_id else pending.subject
    late = "nobody has decided yet: " if pending.urgency is Urgency.ESCALATION else ""
    lines = [pending.message]
    task = None if pending.task_id is None else tasks.find(tx, pending.task_id)
    if task is not None:
        decision = decision_about(tx, now, policy, task)
        lines += [decision.summary, *_facts(decision.task)]
        if decision.settles_in is not None:
            lines.append(f"It can be resolved to failed in {decision.settles_in.total_seconds() / 60:.0f} min.")
    lines += [f"Since {pending.raised_at}", notify.link(pending.task_id)]
    return Message(text_of([f"order-gateway: {late}{_spoken(pending.kind)}, {about}"]), text_of(lines))


def _many(notify: NotifyPolicy, urgency: Urgency, standing: Sequence[Pending]) -> Message:
    late = "nobody has decided yet: " if urgency is Urgency.ESCALATION else ""
    lines = [f"{_spoken(pending.kind)}: {pending.message}" for pending in standing[:_LINES]]
    if len(standing) > _LINES:
        lines.append(f"and {len(standing) - _LINES} more, see `order-gateway decisions`")
    return Message(f"order-gateway: {late}{len(standing)} decisions wait", text_of([*lines, notify.link(None)]))


def _facts(detail: TaskDetail) -> Iterator[str]:
    task = detail.task
    yield f"Site: {Target(task.site, task.account)}"
    told = [report.payable_yen for report in detail.reports if report.payable_yen is not None]
    if told:
        yield f"Amount: {told[-1]:,} yen"
    elif task.terms is not None:
        yield f"Amount: {task.terms.payable_yen:,} yen, as the confirmation page showed it"
    elif task.max_total_yen is not None:
        yield f"Amount: up to {task.max_total_yen:,} yen"
    deadlines = [report.pay_deadline for report in detail.reports if report.pay_deadline is not None]
    if deadlines:
        yield f"To be paid by {deadlines[-1]}"
    if task.not_after is not None:
        yield f"To be ordered by {task.not_after}"


def _digest(notify: NotifyPolicy, gathered: Sequence[Pending]) -> Message:
    lines = [f"{_edge(pending)} {_spoken(pending.kind)}: {pending.message}" for pending in gathered[:_LINES]]
    if len(gathered) > _LINES:
        lines.append(f"and {len(gathered) - _LINES} more, see `order-gateway alerts`")
    count = "1 thing" if len(gathered) == 1 else f"{len(gathered)} things"
    return Message(f"order-gateway: {count} to know, nothing urgent", text_of([*lines, notify.link(None)]))


def _edge(pending: Pending) -> str:
    return f"{pending.raised_at} raised" if pending.edge == "raised" else f"{pending.cleared_at} over:"


def _spoken(kind: AlertKind) -> str:
    return kind.value.replace("_", " ")
