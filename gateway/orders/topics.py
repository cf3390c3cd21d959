"""Topics by which those who wait for orders are woken."""

from typing import Final

from common.target import Target
from gateway.domain.hints import hint
from gateway.store.port import Transaction

QUEUE: Final = "queue"
"""Topic of everything that may let a waiting lease go on."""

HELD: Final = "held"
"""Topic of tasks that are kept back until their time."""

_TASK: Final = "task:"


def notify_queue(tx: Transaction, target: Target | None) -> None:
    """Wake those who wait for an order of this target; None: of any."""
    tx.notify(QUEUE)
    tx.notify(hint(QUEUE, target))


def topic_of(task_id: str) -> str:
    """Return the topic of every change of one task."""
    return f"{_TASK}{task_id}"


def is_of_task(topic: str) -> bool:
    """Tell whether it is the topic of one task."""
    return topic.startswith(_TASK)
