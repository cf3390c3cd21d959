"""The PostgreSQL store of one gateway in a simulation: the production code, its threads under the virtual clock."""

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from gateway.domain.instant import Instant
from gateway.store.port import PreCommitHook, StoreUnavailableError, Transaction
from gateway.store.postgres.engine import Database, PostgresStore
from gateway.store.postgres.writer import PostgresWriter
from tests.simulation.gateways.server import SimServer
from tests.simulation.gateways.session import Deed
from tests.simulation.gateways.threads import Threads
from tests.simulation.loop import PROCESS, Process


class DeedWatch(Protocol):
    """Sees what callers are told of their operations."""

    def served_nobody(self, operation: str) -> None: ...
    def told(self, deed: Deed, *, is_done: bool) -> None: ...


class SimPostgresWriter(PostgresWriter):
    """Its thread is a virtual one."""

    def __init__(self, *args: Any, **options: Any) -> None:
        process = PROCESS.get()
        assert process is not None
        self._process = process
        super().__init__(*args, **options)
        self._thread = Threads(process)  # type: ignore[assignment]

    @property
    def has_stopped(self) -> bool:
        return self._stopped

    def _gather_next(self) -> None:
        self._process.call(super()._gather_next)

    def _prepare_in_loop(self, notified: set[str]) -> list[PreCommitHook]:
        """No other thread runs, so the loop's state may be looked at from here."""
        return self._prepared(notified)


class SimPostgresStore(PostgresStore):
    """Notes of each operation whether it was done, and what its caller is told."""

    def __init__(
        self,
        database: Database,
        publish: Callable[[set[str]], None],
        on_fatal: Callable[[BaseException], None],
        process: Process,
        server: SimServer,
        watch: DeedWatch,
    ) -> None:
        super().__init__(database, publish, on_fatal)
        self._reader_threads = Threads(process)  # type: ignore[assignment]
        self._server = server
        self._watch = watch

    async def write(self, operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        deed, asked = Deed(getattr(operation, "__name__", "an operation")), list[asyncio.Future[Any]]()

        def run(tx: Transaction, now: Instant) -> Any:
            if asked[0].cancelled():
                self._watch.served_nobody(deed.name)
            result = deed.result = operation(tx, now, *args, **kwargs)
            tx._session.deeds.append(deed)  # type: ignore[attr-defined]
            return result

        writer: Any = self._writer
        asked.append(writer.submit(run))
        try:
            result = await asked[0]
        except StoreUnavailableError:
            if not writer.has_stopped:  # then everybody is told that nobody knows
                self._watch.told(deed, is_done=False)
            raise
        self._watch.told(deed, is_done=True)
        return result

    async def write_many(self, operation: Any, /, *args: Any, **kwargs: Any) -> Any:
        return await self.write(operation, *args, **kwargs)
