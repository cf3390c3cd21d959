"""A worker process that stops existing, or stops running, once, at a named failpoint: `crashing_worker NAME SIGNAL`.

It prints each failpoint as it passes it. The worker itself is the production one, wired by `worker.main`.
"""

import asyncio
import os
import signal
import sys

from worker.cli.signals import stop_on_signals
from worker.failpoints import FailpointName
from worker.main import run_worker
from worker.settings import load_settings
from worker.telemetry.logs import configure_logging


async def main(at: str, number: int) -> None:
    struck = False

    async def failpoint(name: FailpointName) -> None:
        nonlocal struck
        sys.stdout.write(f"{name}\n")
        sys.stdout.flush()
        if name == at and not struck:
            struck = True
            os.kill(os.getpid(), number)

    stop = asyncio.Event()
    stop_on_signals(stop)
    configure_logging("text", "INFO")
    await run_worker(load_settings(), stop=stop, failpoint=failpoint)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], signal.Signals[sys.argv[2]]))
