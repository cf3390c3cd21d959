"""The double of the database server keeps the rules that tests/gateway/store/postgres shows of the real one."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from gateway.store.postgres.failures import ConnectionLostError, Fate, fate_of
from tests.simulation.gateways.server import IDLE_SECONDS, LOCK_SECONDS, SimServer
from tests.simulation.gateways.session import READ_WRITE, SimSession
from tests.simulation.gateways.sql import LOCK, shared_migrated
from tests.simulation.gateways.threads import Threads, VirtualTime
from tests.simulation.loop import Process, VirtualLoop
from tests.simulation.trace import Trace

LEADER = {"gateway_id": "g", "elapsed_us": 0, "ends_us": 1}


class Watch:
    """Sees the commits."""

    committing = ""

    def __init__(self) -> None:
        self.commits: list[str] = []

    def committed(self, _database: Any, _ran_at: float) -> None: ...

    def made(self, session: SimSession) -> None:
        self.commits.append(session.process.name)

    def set_back_in_a_wait(self, _seconds: float) -> None: ...


class Rig:
    """A server, and processes that do something with it."""

    def __init__(self, folder: Path) -> None:
        shutil.copy(shared_migrated(), folder / "gateway.db")
        self.loop = VirtualLoop()
        self.watch = Watch()
        self.time = VirtualTime(self.loop)
        chance = random.Random(1)  # noqa: S311 -- reproducible on purpose
        self.server = SimServer(self.loop, folder / "gateway.db", chance, Trace(self.loop.time, folder), self.watch)
        self._works: list[Any] = []

    def start(self, name: str, work: Callable[[SimSession], Any]) -> Process:
        process = Process(self.loop, name)
        self._works.append(Threads(process).run(lambda: work(self.server.open(process))))
        return process

    def results(self) -> list[Any]:
        """What each has returned or raised, when all are done."""

        async def wait() -> list[Any]:
            return [await work for work in self._works]

        try:
            return self.loop.run_until_complete(wait())
        finally:
            self.loop.abandon()


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def begin(session: SimSession) -> None:
    session.command(READ_WRITE)
    session.send(LOCK, {})
    session.count(session.send("leader_take", LEADER))


def commit(session: SimSession) -> None:
    session.command("COMMIT")
    session.settle()


def test_the_lock_goes_from_commit_to_the_next_who_waits(rig: Rig) -> None:
    def work(session: SimSession) -> float:
        begin(session)
        began = rig.loop.time()
        rig.time.sleep(1.0)
        commit(session)
        return began

    for name in ("a", "b", "c"):
        rig.start(name, work)
    first, second, third = rig.results()
    assert rig.watch.commits == ["a", "b", "c"]
    assert second >= first + 1.0
    assert third >= second + 1.0


def test_who_waits_too_long_for_the_lock_is_told_so(rig: Rig) -> None:
    def holds(session: SimSession) -> None:
        begin(session)
        rig.time.sleep(LOCK_SECONDS + 1.0)
        commit(session)

    def waits(session: SimSession) -> tuple[Fate, float]:
        began = rig.loop.time()
        with pytest.raises(psycopg.Error) as error:
            begin(session)
        return fate_of(error.value), rig.loop.time() - began

    rig.start("a", holds)
    rig.start("b", waits)
    assert rig.results()[1] == (Fate.UNAVAILABLE, pytest.approx(LOCK_SECONDS))
    assert rig.watch.commits == ["a"]


def test_the_session_of_a_process_that_stands_still_is_ended_and_its_lock_goes_on(rig: Rig) -> None:
    def stands_still(session: SimSession) -> Fate:
        begin(session)
        rig.loop.call_later(0.0, stop)
        rig.time.sleep(0.5)
        with pytest.raises(psycopg.Error) as error:
            commit(session)
        return fate_of(error.value)

    def stop() -> None:
        process.freeze()
        rig.server.stands_still(process)
        rig.server.later(60.0, process.thaw)

    def waits(session: SimSession) -> float:
        began = rig.loop.time()
        begin(session)
        commit(session)
        return rig.loop.time() - began

    process = rig.start("a", stands_still)
    rig.start("b", waits)
    fate, waited = rig.results()
    assert (fate, rig.watch.commits) == (Fate.RECONNECT, ["b"])
    assert waited == pytest.approx(IDLE_SECONDS, abs=0.1)


@pytest.mark.parametrize(("fate", "is_made"), [("made", True), ("made late", True), ("not made", False)])
def test_a_commit_without_an_answer_was_made_or_not(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, fate: str, *, is_made: bool
) -> None:
    fates = iter([fate, None])
    monkeypatch.setattr(rig.server, "_fate", lambda: next(fates))

    def loses_the_answer(session: SimSession) -> None:
        begin(session)
        with pytest.raises(ConnectionLostError):
            commit(session)
        session.close()

    def asks(session: SimSession) -> bool:
        rig.time.sleep(0.05)
        session.command(READ_WRITE)
        session.send(LOCK, {})
        found = bool(session.rows(session.send("leader_get", {})))
        commit(session)
        return found

    rig.start("a", loses_the_answer)
    rig.start("b", asks)
    assert rig.results()[1] is is_made
