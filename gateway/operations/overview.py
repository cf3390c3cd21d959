"""How the last day went: how many tasks waited in the queue, and what people decided."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from gateway.domain.instant import Instant, parse_utc, utc_text
from gateway.domain.statements import DECISIONS
from gateway.operations.history import first_at_or_after
from gateway.store import counts, history
from gateway.store.port import ReadTransaction

STEP: Final = timedelta(minutes=10)
STEPS: Final = 144

MAX_EVENTS: Final = 50_000
"""Events that are looked at, the newest ones: where a day has more, the picture begins later."""

_OF_A_STEP: Final = len("2026-11-30T23:4")


@dataclass(frozen=True, slots=True)
class Step:
    """Ten minutes from `begins_at` on: how many tasks waited in the queue at their end, and decisions taken in them."""

    begins_at: str
    queued: int
    decisions: int


def last_day(tx: ReadTransaction, now: Instant) -> tuple[Step, ...]:
    """Return the steps of the last 24 hours, the first one first; fewer where they hold too many events."""
    since = utc_text(parse_utc(now.utc) - STEP * STEPS)
    last = history.last_sequence(tx)
    first = first_at_or_after(tx, since)
    begin = max(first, last - MAX_EVENTS + 1)
    moves = history.moves_by_step(tx, DECISIONS, first=begin, last=last, length=_OF_A_STEP)
    cut = None if begin == first else history.first_from(tx, begin)
    steps, queued = [], counts.queued_tasks(tx)
    for begins_at in _steps_back(now):
        if cut is not None and begins_at < cut.occurred_at:
            break
        move = moves.get(begins_at[:_OF_A_STEP])
        steps.append(Step(begins_at, max(0, queued), 0 if move is None else move.of_kinds))
        queued -= 0 if move is None else move.entered - move.left
    return tuple(reversed(steps))


def _steps_back(now: Instant) -> Iterator[str]:
    at = parse_utc(now.utc)
    at = at.replace(minute=at.minute // 10 * 10, second=0, microsecond=0)
    for number in range(STEPS):
        yield utc_text(at - number * STEP)
