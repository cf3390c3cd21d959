"""The history: append-only, numbered, and read by people and sweeps; no rule reads it to decide."""

from dataclasses import dataclass

from gateway.domain.instant import Instant
from gateway.domain.models import Actor
from gateway.domain.operations import HistoryEvent
from gateway.domain.states import TaskStatus
from gateway.store.port import ReadTransaction, Row, Transaction


@dataclass(frozen=True, slots=True)
class EventPosition:
    """An event's number and when it happened; times never decrease with the number."""

    sequence: int
    occurred_at: str


@dataclass(frozen=True, slots=True)
class Moves:
    """What happened within a step of time: tasks that came into the queue and left it, and events of some kinds."""

    entered: int
    left: int
    of_kinds: int


def append(
    tx: Transaction,
    now: Instant,
    subject: str,
    kind: str,
    actor: Actor,
    *,
    moved: tuple[TaskStatus | None, TaskStatus | None] = (None, None),
    reason: str = "",
    details_json: str = "{}",
) -> None:
    """Append an event; `moved`: the task's status before and after it, None where it concerns no status."""
    tx.insert(
        "event_append",
        at=now.utc,
        subject=subject,
        kind=kind,
        actor=actor.identity,
        worker_id=actor.worker_id,
        before=moved[0],
        after=moved[1],
        reason=reason,
        details_json=details_json,
    )


def last(tx: ReadTransaction) -> EventPosition | None:
    """Return the newest event's position; None in a new database."""
    return _position(tx.one("event_last"))


def last_sequence(tx: ReadTransaction) -> int:
    """Return the newest event's number; 0 in a new database."""
    newest = last(tx)
    return 0 if newest is None else newest.sequence


def first_from(tx: ReadTransaction, sequence: int) -> EventPosition | None:
    """Return the first event with this number or a greater one."""
    return _position(tx.one("event_from", sequence=sequence))


def last_details(tx: ReadTransaction, subject: str, kind: str, actor: Actor) -> str | None:
    """Return the details of the actor's newest event of this kind, None if there is none: a repeat adds nothing."""
    row = tx.one("event_last_of_kind", subject=subject, kind=kind, actor=actor.identity)
    details: str | None = None if row is None else row["details_json"]
    return details


def are_as_many(tx: ReadTransaction, subject: str, kind: str, actor: Actor, number: int) -> bool:
    """Tell whether the actor has this many events of this kind on a subject, or more."""
    return tx.one("event_number_of_kind", subject=subject, kind=kind, actor=actor.identity, number=number) is not None


def newest(
    tx: ReadTransaction, subject: str | None, kinds: tuple[str, ...], *, first: int, below: int, count: int
) -> list[HistoryEvent]:
    """Return up to `count` events, newest first, of a subject (None: all) and some kinds (none: all).

    Their numbers are at least `first` and smaller than `below`.
    """
    listed = f",{','.join(kinds)}," if kinds else ""
    if subject is None:
        rows = tx.all("events_newest", below=below, first=first, kinds=listed, count=count)
    else:
        rows = tx.all("events_newest_of_subject", subject=subject, below=below, first=first, kinds=listed, count=count)
    return [_event(row) for row in rows]


def subjects_after(tx: ReadTransaction, sequence: int) -> list[str]:
    """Return the subjects of events with greater numbers, of up to 10,000 events."""
    return [row["subject"] for row in tx.all("events_subjects_after", sequence=sequence)]


def moves_by_step(
    tx: ReadTransaction, kinds: tuple[str, ...], *, first: int, last: int, length: int
) -> dict[str, Moves]:
    """Return what the events of these numbers amount to, by the first `length` characters of when they happened."""
    rows = tx.all("events_moves_by_step", kinds=f",{','.join(kinds)},", first=first, last=last, length=length)
    return {row["step"]: Moves(row["entered"], row["went"], row["of_kinds"]) for row in rows}


def _position(row: Row | None) -> EventPosition | None:
    return None if row is None else EventPosition(row["sequence"], row["occurred_at"])


def _event(row: Row) -> HistoryEvent:
    return HistoryEvent(
        sequence=row["sequence"],
        occurred_at=row["occurred_at"],
        subject=row["subject"],
        kind=row["kind"],
        actor=row["actor"],
        worker_id=row["worker_id"],
        before=row["status_before"],
        after=row["status_after"],
        reason=row["reason"],
        details_json=row["details_json"],
    )
