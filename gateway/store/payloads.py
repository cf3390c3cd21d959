"""The intents of tasks that ended long ago, and the digests that take their place."""

from dataclasses import dataclass

from gateway.store.port import ReadTransaction, Transaction


@dataclass(frozen=True, slots=True)
class Payload:
    """A task's intent, for whoever drops it."""

    row: int
    task_id: str
    intent_json: str


def of_ended_tasks(tx: ReadTransaction, after_row: int, before: str, count: int) -> list[Payload]:
    """Return up to `count` payloads of tasks that ended before a time and do not alert, by row."""
    rows = tx.all("tasks_to_strip", after=after_row, before=before, count=count)
    return [Payload(row["row"], row["task_id"], row["intent_json"]) for row in rows]


def strip(tx: Transaction, task_id: str, digest: str, before: str) -> bool:
    """Put the digest in the place of a task's intent; False if something has happened to it since that time."""
    return tx.change("task_strip", task_id=task_id, digest=digest, before=before) > 0
