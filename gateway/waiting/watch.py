"""Watching a task until it ends."""

from collections.abc import AsyncGenerator

from gateway.domain.models import TaskDetail
from gateway.domain.refusals import Refusal, RefusedError
from gateway.domain.states import ENDED
from gateway.orders.history import topic_of
from gateway.orders.read import get_task
from gateway.store.port import Store
from gateway.waiting.hub import Hub
from gateway.waiting.stream import HEARTBEAT, HEARTBEAT_SECONDS, Heartbeat, shutting_down


async def watch_task(
    store: Store, hub: Hub, task_id: str, heartbeat_seconds: float = HEARTBEAT_SECONDS
) -> AsyncGenerator[Heartbeat | TaskDetail]:
    """Yield the task now and after each change until it has ended, heartbeats in between.

    Raises RefusedError: TASK_NOT_FOUND, or SHUTTING_DOWN when the gateway stops.
    """
    with hub.subscribe(topic_of(task_id)) as changes:
        last: TaskDetail | None = None
        while True:
            found = await store.read(get_task, task_id)
            if isinstance(found, Refusal):
                raise RefusedError(found)
            if found != last:
                yield found
                last = found
            if found.task.status in ENDED:
                return
            while not await changes.wait(heartbeat_seconds):
                yield HEARTBEAT
            if hub.closing:
                raise shutting_down()
