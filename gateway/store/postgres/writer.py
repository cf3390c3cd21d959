"""Group commit on PostgreSQL: gathers in the event loop's thread, runs and commits in a thread of its own.

Every round trip takes time in which the loop can serve, so operations and hooks run in the writer's thread. What they
need to know of the loop's state is prepared there, in between.
"""

import asyncio
import concurrent.futures
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from gateway.store.gathering import GatheringWriter, OnCommit, ignore_commit
from gateway.store.port import PreCommitHook, StoreUnavailableError
from gateway.store.postgres.attempts import Attempts, Outcome
from gateway.store.postgres.continuity import Continuity
from gateway.store.postgres.failures import ConnectionLostError
from gateway.store.postgres.group_log import GroupLog
from gateway.store.postgres.session import Session

_PREPARE_SECONDS: Final = 5.0
"""How long the loop is waited for; the server ends a transaction that stands still before that."""


class PostgresWriter(GatheringWriter):
    """Runs the groups of one gateway.

    `publish` is called with the topics of each committed group and `on_commit` with its size and time; `on_fatal` once,
    when the writer has stopped for good; `on_lost`, in its thread, when its session is lost.
    """

    def __init__(
        self,
        connect: Callable[[], Session],
        log: GroupLog,
        continuity: Continuity,
        publish: Callable[[set[str]], None],
        on_fatal: Callable[[BaseException], None],
        on_commit: OnCommit = ignore_commit,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(publish)
        self._on_fatal = on_fatal
        self._on_commit = on_commit
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._attempts = Attempts(connect, log, continuity, self._take_group, self._prepare_in_loop, on_lost)

    async def close(self) -> None:
        """Run what is queued, then close the session."""
        self._stopped = True
        await self._drained.wait()
        await asyncio.to_thread(self._thread.shutdown)
        self._attempts.close()

    def _begin(self) -> None:
        self._thread.submit(self._run)

    def _run(self) -> None:
        outcome = self._attempts.run()
        self._loop.call_soon_threadsafe(self._ran, outcome)

    def _ran(self, outcome: Outcome) -> None:
        if outcome.fatal is not None:
            self._stopped = True
            self._fail([*outcome.group, *self._pending], StoreUnavailableError(str(outcome.fatal)))
            self._pending.clear()
            self._on_fatal(outcome.fatal)
        elif isinstance(outcome.error, StoreUnavailableError):
            self._fail(outcome.group, outcome.error)
        elif outcome.effects is not None:
            self._answer(outcome.group)
            self._tell(outcome.effects)
            self._on_commit(len(outcome.group), outcome.commit_seconds)
        self._next()

    def _prepare_in_loop(self, notified: set[str]) -> list[PreCommitHook]:
        if self._pre_commit_hooks.keys().isdisjoint(notified):
            return []
        prepared: concurrent.futures.Future[list[PreCommitHook]] = concurrent.futures.Future()
        self._loop.call_soon_threadsafe(lambda: prepared.set_result(self._prepared(notified)))
        try:
            return prepared.result(_PREPARE_SECONDS)
        except TimeoutError:
            raise ConnectionLostError("the event loop stood still for too long") from None
