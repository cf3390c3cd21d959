"""Topics by which those who wait for orders are woken."""

from typing import Final

QUEUE: Final = "queue"
"""Topic of everything that may let a waiting lease go on."""


def topic_of(task_id: str) -> str:
    """Return the topic of every change of one task."""
    return f"task:{task_id}"
