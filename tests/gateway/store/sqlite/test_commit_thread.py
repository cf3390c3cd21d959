"""Where a COMMIT runs: beside the loop, or in its thread where nobody else waits and the disk has proved quick."""

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.store import workers
from gateway.store.sqlite import writer
from tests.gateway.store.conformance.engines import SqliteEngine, sqlite_engine
from tests.gateway.support.manual_time import ManualTime

PROOF = 3


@pytest.fixture
def quick_seconds(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A disk counts as quick whatever else the machine does, after few commits."""
    monkeypatch.setattr(writer, "QUICK_SECONDS", 3_600.0)
    monkeypatch.setattr(writer, "QUICK_COMMITS", PROOF)
    return monkeypatch


@pytest_asyncio.fixture
async def engine(tmp_path: Path, time: ManualTime, quick_seconds: pytest.MonkeyPatch) -> AsyncIterator[SqliteEngine]:
    async with sqlite_engine(tmp_path, time) as engine:
        assert isinstance(engine, SqliteEngine)
        yield engine


async def commits_in_the_loop(engine: SqliteEngine, callers: int) -> int:
    """How many commits ran in this thread while so many wrote at once."""
    here: list[bool] = []
    commit = engine.store._writer._commit  # type: ignore[attr-defined]

    def observed() -> object:
        here.append(threading.current_thread() is threading.main_thread())
        return commit()

    engine.store._writer._commit = observed  # type: ignore[attr-defined]
    try:
        await asyncio.gather(*(engine.store.write(workers.seen, f"w{number}") for number in range(callers)))
    finally:
        engine.store._writer._commit = commit  # type: ignore[attr-defined]
    return sum(here)


async def test_lone_commits_leave_the_thread_once_the_disk_has_proved_quick(engine: SqliteEngine) -> None:
    assert [await commits_in_the_loop(engine, 1) for _ in range(PROOF + 2)] == [0] * PROOF + [1, 1]


async def test_among_many_callers_every_commit_runs_beside_the_loop(engine: SqliteEngine) -> None:
    for _ in range(PROOF + 1):
        await commits_in_the_loop(engine, 1)
    assert await commits_in_the_loop(engine, 8) == 0
    assert await commits_in_the_loop(engine, 1) == 0, "one that was left over by others"
    assert await commits_in_the_loop(engine, 1) == 1


async def test_one_slow_commit_and_the_proof_begins_anew(
    engine: SqliteEngine, quick_seconds: pytest.MonkeyPatch
) -> None:
    for _ in range(PROOF + 1):
        await commits_in_the_loop(engine, 1)
    with quick_seconds.context() as slow:
        slow.setattr(writer, "QUICK_SECONDS", 0.0)
        assert await commits_in_the_loop(engine, 1) == 1
    assert [await commits_in_the_loop(engine, 1) for _ in range(PROOF + 1)] == [0] * PROOF + [1]
