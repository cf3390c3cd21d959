"""Dropping the payload of tasks that ended long ago (RAKUTEN_RETENTION_DAYS).

The task, its reports and its history stay for ever, and so do its key and a digest of the intent: a resubmission of an
old key is still known, and `intent_matches` is still judged. A task that alerts keeps its payload.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from gateway.domain.instant import Instant, parse_utc, utc_text
from gateway.domain.intents import intent_digest
from gateway.store import payloads
from gateway.store.port import ReadTransaction, Transaction


@dataclass(frozen=True, slots=True)
class Old:
    """A task whose payload may go, with the digest that takes its place."""

    row: int
    task_id: str
    digest: str


def find_old(tx: ReadTransaction, now: Instant, after_row: int, keep: timedelta, count: int) -> list[Old]:
    """Return up to `count` tasks after a row whose end is longer ago than `keep`. Only reads, so it may take long."""
    return [
        Old(payload.row, payload.task_id, intent_digest(payload.intent_json))
        for payload in payloads.of_ended_tasks(tx, after_row, _before(now, keep), count)
    ]


def strip(tx: Transaction, now: Instant, old: Sequence[Old], keep: timedelta) -> int:
    """Drop the payloads of these tasks, unless something has happened to them meanwhile; return how many."""
    before = _before(now, keep)
    return sum(payloads.strip(tx, task.task_id, task.digest, before) for task in old)


def _before(now: Instant, keep: timedelta) -> str:
    return utc_text(parse_utc(now.utc) - keep)
