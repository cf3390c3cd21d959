"""A commit of which nobody knows whether it was made ends the process: a file cannot be asked."""

import asyncio
import sqlite3
from pathlib import Path

from gateway.store import workers
from gateway.store.port import StoreUnavailableError
from tests.gateway.store.conformance.engines import SqliteEngine, sqlite_engine
from tests.gateway.support.manual_time import ManualTime


async def test_a_commit_of_unknown_outcome_is_fatal(tmp_path: Path, time: ManualTime) -> None:
    async with sqlite_engine(tmp_path, time) as engine:
        assert isinstance(engine, SqliteEngine)
        failure = sqlite3.OperationalError("disk I/O error")
        failure.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        engine.store._writer._commit = lambda: failure  # type: ignore[method-assign]
        outcomes = await asyncio.gather(
            *(engine.store.write(workers.seen, f"w{number}") for number in range(3)), return_exceptions=True
        )
        assert {type(outcome) for outcome in outcomes} == {StoreUnavailableError}
        assert engine.fatal == [failure]
        assert engine.published == []
        closed = await asyncio.gather(engine.store.write(workers.seen, "w9"), return_exceptions=True)
        assert "closed" in str(closed[0])
