"""NATS JetStream with a stream on disk and a pull consumer, one message at a time.

Its server answers before it has flushed: every two minutes by default, and before 2.10 it cannot be told otherwise. Its
key against duplicates holds for two minutes.
"""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import nats
from nats.js.api import AckPolicy, ConsumerConfig, RetentionPolicy, StorageType

from bench.load import INTENT

STREAM: Final = "ORDERS"
SUBJECT: Final = "orders"
WORKER: Final = "worker"


class JetStream:
    """JetStream as a peer."""

    def __init__(self, context: Any, consumer: Any) -> None:
        self._context, self._consumer = context, consumer

    async def submit(self) -> object:
        """Publishes a message; gives its number."""
        answer = await self._context.publish(SUBJECT, INTENT.encode(), headers={"Nats-Msg-Id": uuid.uuid4().hex})
        return answer.seq

    @asynccontextmanager
    async def worker(self) -> AsyncIterator["asyncio.Queue[tuple[object, float]]"]:
        """A loop that fetches and acknowledges, one message at a time."""
        taken: asyncio.Queue[tuple[object, float]] = asyncio.Queue()

        async def work() -> None:
            while True:
                number, message = await self.take()
                taken.put_nowait((number, time.perf_counter()))
                await self.finish(message)

        working = asyncio.create_task(work())
        try:
            yield taken
        finally:
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

    async def take(self) -> tuple[object, Any]:
        """Fetches the next message."""
        (message,) = await self._consumer.fetch(1, timeout=60)
        return message.metadata.sequence.stream, message

    async def finish(self, taken: Any) -> None:
        """Acknowledges a message and waits until the server says that it knows."""
        await taken.ack_sync()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[JetStream]:
    """The stream at an address; it is made where there is none."""
    client = await nats.connect(url)
    try:
        context = client.jetstream()
        await context.add_stream(
            name=STREAM, subjects=[SUBJECT], storage=StorageType.FILE, retention=RetentionPolicy.WORK_QUEUE
        )
        config = ConsumerConfig(ack_policy=AckPolicy.EXPLICIT, max_ack_pending=1)
        yield JetStream(context, await context.pull_subscribe(SUBJECT, durable=WORKER, config=config))
    finally:
        await client.close()
