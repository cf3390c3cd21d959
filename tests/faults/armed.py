"""Programs that end at a place that they are told on their standard input: `armed gateway`, `armed worker`.

A line `PLACE SIGNAL` arms the next pass of that place. Both are the production programs; only the places are added.
"""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Collection
from typing import Any

from gateway.cli import main as gateway_main
from gateway.orders.topics import topic_of
from gateway.store.postgres.group_log import GroupLog
from gateway.store.sqlite.writer import GroupWriter
from worker.cli.signals import stop_on_signals
from worker.failpoints import FailpointName
from worker.main import run_worker
from worker.settings import load_settings
from worker.telemetry.logs import configure_logging

GATEWAY_PLACES = ("before-begin", "before-commit", "after-commit")
TASK_TOPIC = topic_of("")


class Trap:
    """Strikes once where it is set."""

    def __init__(self) -> None:
        self._at: tuple[str, signal.Signals] | None = None
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            place, name = line.split()
            self._at = (place, signal.Signals[name])
            print(f"armed {place}", flush=True)

    def passes(self, place: str) -> None:
        at = self._at
        if at is not None and at[0] == place:
            self._at = None
            # This thread goes no further: a signal to the process may be another thread's to take.
            signal.pthread_kill(threading.get_ident(), at[1])


def gateway() -> None:
    trap = Trap()
    if "RAKUTEN_GATEWAY_DB_URL" in os.environ:
        arm_groups_of_a_server(trap)
    else:
        arm_groups_of_a_file(trap)
    sys.argv = ["order-gateway", "serve"]
    gateway_main()


def arm_groups_of_a_server(trap: Trap) -> None:
    """The places of a commit, and the same in a group that has changed a certain task: `before-commit:TASK`.

    Before it the writer's lock is held, and the server waits for nothing but this program.
    """
    begin, close, commit = GroupLog.open, GroupLog.close, GroupLog.commit
    changed: list[str] = []

    def begin_or_end(self: GroupLog, session: Any) -> Any:
        trap.passes("before-begin")
        return begin(self, session)

    def close_and_remember(self: GroupLog, session: Any, group_id: str, moment: Any, topics: Collection[str]) -> None:
        changed[:] = [topic.removeprefix(TASK_TOPIC) for topic in topics if topic.startswith(TASK_TOPIC)]
        close(self, session, group_id, moment, topics)

    def pass_all(place: str) -> None:
        for at in (place, *(f"{place}:{task_id}" for task_id in changed)):
            trap.passes(at)

    def commit_or_end(self: GroupLog, session: Any) -> None:
        pass_all("before-commit")
        commit(self, session)
        pass_all("after-commit")

    GroupLog.open, GroupLog.close = begin_or_end, close_and_remember  # type: ignore[method-assign,assignment]
    GroupLog.commit = commit_or_end  # type: ignore[method-assign]


def arm_groups_of_a_file(trap: Trap) -> None:
    begin, commit = GroupWriter._begin, GroupWriter._commit

    def begin_or_end(self: GroupWriter) -> None:
        trap.passes("before-begin")
        begin(self)

    def commit_or_end(self: GroupWriter) -> Any:
        trap.passes("before-commit")
        error = commit(self)
        trap.passes("after-commit")
        return error

    GroupWriter._begin, GroupWriter._commit = begin_or_end, commit_or_end  # type: ignore[method-assign]


async def worker() -> None:
    trap = Trap()

    async def failpoint(name: FailpointName) -> None:
        trap.passes(name)

    stop = asyncio.Event()
    stop_on_signals(stop)
    configure_logging("text", "INFO")
    await run_worker(load_settings(), stop=stop, failpoint=failpoint)


if __name__ == "__main__":
    if sys.argv[1] == "gateway":
        gateway()
    else:
        asyncio.run(worker())
