"""What every engine's store shares: operations wait for the next group, reads for one of a few threads."""

import asyncio
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Concatenate, Final, ParamSpec, TypeVar

from gateway.domain.instant import Instant
from gateway.store.gathering import GatheringWriter
from gateway.store.port import PrepareHook, ReadTransaction, Transaction

P = ParamSpec("P")
T = TypeVar("T")

READERS: Final = 2

MAX_READS: Final = 32
"""How many reads may be asked of the readers at once. What they find waits in memory for the loop, which is slower."""


class GroupedStore(ABC):
    """The port `Store` over an engine's writer and its way to read."""

    def __init__(self, writer: GatheringWriter) -> None:
        self._writer = writer
        self._reader_threads = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        self._reads = asyncio.Semaphore(MAX_READS)

    async def write(
        self, operation: Callable[Concatenate[Transaction, Instant, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation in the next group and return its result once it is durable."""
        result: T = await self._writer.submit(lambda tx, now: operation(tx, now, *args, **kwargs))
        return result

    async def write_many(
        self, operation: Callable[Concatenate[Transaction, Instant, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation of many rows in the next group, which then runs beside the event loop."""
        result: T = await self._writer.submit(lambda tx, now: operation(tx, now, *args, **kwargs), long=True)
        return result

    def add_pre_commit_hook(self, topic: str, prepare: PrepareHook) -> None:
        """Let what `prepare` returns run at the end of every transaction that notifies `topic`."""
        self._writer.add_pre_commit_hook(topic, prepare)

    async def read(
        self, operation: Callable[Concatenate[ReadTransaction, Instant, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation that only reads, on a snapshot of what is committed."""
        work = functools.partial(self._read, lambda tx, now: operation(tx, now, *args, **kwargs))
        async with self._reads:
            result: T = await asyncio.get_running_loop().run_in_executor(self._reader_threads, work)
        return result

    @abstractmethod
    def _read(self, run: Callable[[ReadTransaction, Instant], T]) -> T:
        """Run it on a snapshot, in the reader's thread that calls. Raises StoreUnavailableError."""
