"""What the database tells of parts that fail without anybody waiting for them, and of what waits for a person."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Final

from gateway.domain.health import Health, Problem, ProblemKind
from gateway.domain.instant import Instant, parse_utc
from gateway.domain.models import Actor, Policy, TaskFilter
from gateway.domain.operations import BackupFacts
from gateway.domain.states import TaskStatus
from gateway.operations.notifications import channel_states, problems_of_channels
from gateway.orders.history import record_general
from gateway.orders.read import health
from gateway.store import alert_deliveries, backups, counts, history, task_lists
from gateway.store.port import ReadTransaction, Transaction

FAILED_TRIES: Final = 3
"""One try may fail anywhere; after so many in a row (some 35 s) something is wrong."""

_COUNTED: Final = 1_000
_NAMED: Final = 5

BACKUP: Final = "backup"
"""The kind of event that tells of a backup."""


def health_with_problems(
    tx: ReadTransaction,
    now: Instant,
    policy: Policy,
    *,
    has_webhook: bool,
    backup_alert: timedelta | None,
    channels: Sequence[str] = (),
) -> Health:
    """Return what a person looks at first, with everything wrong that the database knows of.

    `has_webhook`: whether alerts are posted anywhere; `channels`: through which people are told of
    them; `backup_alert`: how old the newest backup may be, None: any age.
    """
    found, states = health(tx, now, policy), channel_states(tx, channels)
    problems = [*_problems(tx, found), *_not_taken(tx, has_webhook=has_webhook), *problems_of_channels(states)]
    if backup_alert is not None:
        problems += _without_backup(tx, now, backup_alert)
    return replace(found, problems=tuple(problems), channels=states)


def record_backup(tx: Transaction, now: Instant, facts: BackupFacts, actor: Actor) -> None:
    """Note that a backup was made and verified, so that its age is known wherever the file is moved to."""
    backups.add(tx, now, facts)
    record_general(tx, now, BACKUP, actor, file=facts.file_name, bytes=facts.size_bytes, sha256=facts.sha256)


def _problems(tx: ReadTransaction, found: Health) -> Iterator[Problem]:
    offline = [worker.worker_id for worker in found.workers if worker.offline]
    if offline:
        more = ", …" * (len(offline) > _NAMED)
        yield Problem(ProblemKind.WORKER_OFFLINE, f"not heard of: {', '.join(offline[:_NAMED])}{more}")
    if found.stale_queued_tasks:
        oldest = found.stale_queued_tasks[0]
        yield Problem(ProblemKind.TASK_UNCLAIMED, f"task {oldest.task_id} waits too long and no worker takes it")
    yield from _for_a_person(tx, found)


def _not_taken(tx: ReadTransaction, *, has_webhook: bool) -> Iterator[Problem]:
    notice = alert_deliveries.most_tried(tx) if has_webhook else None
    if notice is not None and notice.attempts >= FAILED_TRIES:
        yield Problem(
            ProblemKind.ALERT_WEBHOOK_FAILING,
            f"the alert webhook has not taken alert {notice.alert_id} in {notice.attempts} tries; the log says "
            "what it answered (RAKUTEN_ALERT_WEBHOOK_URL)",
        )
    failing = counts.failing_callbacks(tx, FAILED_TRIES, _COUNTED)
    if failing:
        more = " or more" * (failing >= _COUNTED)
        yield Problem(
            ProblemKind.CALLBACKS_FAILING,
            f"{failing}{more} callbacks were tried {FAILED_TRIES} times or more and not taken; see "
            "`order-gateway callbacks list`",
        )


def _without_backup(tx: ReadTransaction, now: Instant, longest: timedelta) -> Iterator[Problem]:
    """A gateway without any backup is given the same time from the first event of its history on."""
    last = backups.last_made_at(tx)
    first = history.first_from(tx, 0)
    since = last or (None if first is None else first.occurred_at)
    if since is not None and parse_utc(now.utc) - parse_utc(since) > longest:
        told = "no backup is on record" if last is None else f"the newest backup is of {last}"
        yield Problem(
            ProblemKind.BACKUP_TOO_OLD,
            f"{told}; make one with `order-gateway backup`, see to its timer, or set RAKUTEN_BACKUP_ALERT_SECONDS",
        )


def _for_a_person(tx: ReadTransaction, found: Health) -> Iterator[Problem]:
    waiting = [
        f"{count} {status.value}"
        for status in (TaskStatus.STALE, TaskStatus.NEEDS_HUMAN)
        if (count := task_lists.number_of(tx, TaskFilter(status)))
    ]
    if found.held_for_approval_count:
        waiting.append(f"{found.held_for_approval_count} held for approval")
    if waiting:
        yield Problem(ProblemKind.DECISION_WAITING, f"{', '.join(waiting)} to decide; see `order-gateway decisions`")
    proposed = counts.waiting_proposals(tx, _COUNTED)
    if proposed:
        more = " or more" * (proposed >= _COUNTED)
        told = f"proposals that wait for a second person: {proposed}{more}; see `order-gateway proposals list`"
        yield Problem(ProblemKind.PROPOSAL_WAITING, told)
    standing = [f"{count} {kind}" for kind, count in counts.standing_alerts_by_kind(tx).items()]
    if standing:
        yield Problem(ProblemKind.ALERT_STANDING, f"{', '.join(standing)}; see `order-gateway alerts`")
