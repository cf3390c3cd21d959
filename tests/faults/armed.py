"""Programs that end at a place that they are told on their standard input: `armed gateway`, `armed worker`.

A line `PLACE SIGNAL` arms the next pass of that place. Both are the production programs; only the places are added.
"""

import asyncio
import os
import signal
import sys
import threading
from typing import Any

from gateway.cli import main as gateway_main
from gateway.store.sqlite.writer import GroupWriter
from worker.cli.signals import stop_on_signals
from worker.failpoints import FailpointName
from worker.main import run_worker
from worker.settings import load_settings
from worker.telemetry.logs import configure_logging

GATEWAY_PLACES = ("before-begin", "before-commit", "after-commit")


class Trap:
    """Strikes once where it is set."""

    def __init__(self) -> None:
        self._at: tuple[str, signal.Signals] | None = None
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            place, name = line.split()
            self._at = (place, signal.Signals[name])

    def passes(self, place: str) -> None:
        at = self._at
        if at is not None and at[0] == place:
            self._at = None
            os.kill(os.getpid(), at[1])


def gateway() -> None:
    trap = Trap()
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
    sys.argv = ["order-gateway", "serve"]
    gateway_main()


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
