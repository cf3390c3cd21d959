"""A gateway in a process of its own that measures itself: how long its event loop was held up at worst, and its memory.

The loop is held up by a callback that computes and by a thread that keeps the interpreter's lock: for no longer than
the time between two of its turns, and for no longer than the process has computed in between. The smaller of both
counts, so a machine that is busy with something else changes little, and a thread that computes beside the loop
nothing. `python -m tests.hostile.watched` is the program, `watched_gateway` runs it.
"""

import asyncio
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import uvloop

from gateway.cli.process import take_short_turns
from gateway.logs import set_up_logs
from gateway.main import Ports, run_gateway
from gateway.settings import load_settings

_BEAT_SECONDS = 0.002
MIB = 2**20


@dataclass
class Figures:
    """What an attack has cost so far: milliseconds, seconds of processor time, MiB."""

    longest_stall_ms: float
    processor_seconds: float
    memory_mib: float
    most_memory_mib: float


@dataclass
class WatchedGateway:
    """A running program. Its figures count from the last `begin`."""

    process: asyncio.subprocess.Process
    grpc_port: int
    http_port: int

    async def begin(self) -> None:
        """Count from here on."""
        await self._ask("begin")

    async def figures(self) -> Figures:
        """What was counted."""
        return Figures(**await self._ask("figures"))

    async def _ask(self, what: str) -> dict[str, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{what}\n".encode())
        answer: dict[str, float] = json.loads(await asyncio.wait_for(self.process.stdout.readline(), 60))
        return answer


@asynccontextmanager
async def watched_gateway(folder: Path, **settings: str) -> AsyncIterator[WatchedGateway]:
    """Run the program; settings are lower-case names without the prefix."""
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ} | {
        "RAKUTEN_GATEWAY_DB_PATH": str(folder / "gateway.db"),
        "RAKUTEN_SITES": "rakuten,sandbox",
        "RAKUTEN_GATEWAY_GRPC_PORT": "0",
        "RAKUTEN_GATEWAY_PORT": "0",
        **{f"RAKUTEN_{name.upper()}": value for name, value in settings.items()},
    }
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.hostile.watched",
            cwd=Path(__file__).parents[2], env=environment, stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE, stderr=log,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            ready = await asyncio.wait_for(process.stdout.readline(), 60)
            log.seek(0)
            assert ready, log.read().decode()
            yield WatchedGateway(process, **json.loads(ready))
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


class _Watch:
    """Beats on the loop; asks at each beat how long the one before is ago, and what the process has computed since."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._longest = 0.0
        self._begun = self._computed = time.process_time()
        self._beaten = time.monotonic()
        self._most = 0

    def beat(self, loop: asyncio.AbstractEventLoop) -> None:
        now, computed = time.monotonic(), time.process_time()
        self._longest = max(self._longest, min(now - self._beaten, computed - self._computed))
        self._beaten, self._computed = now, computed
        self._most = max(self._most, self._process.memory_info().rss)
        loop.call_later(_BEAT_SECONDS, self.beat, loop)

    def answer(self, what: str) -> dict[str, float]:
        if what == "begin":
            self._longest, self._most, self._begun = 0.0, 0, time.process_time()
            return {}
        return {
            "longest_stall_ms": self._longest * 1000,
            "processor_seconds": time.process_time() - self._begun,
            "memory_mib": self._process.memory_info().rss / MIB,
            "most_memory_mib": self._most / MIB,
        }


def _tell(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


async def _serve() -> None:
    stop, watch = asyncio.Event(), _Watch()
    loop = asyncio.get_running_loop()

    def tell(what: str) -> None:
        _tell(watch.answer(what))

    def answer_questions() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(tell, line.strip())
        loop.call_soon_threadsafe(stop.set)

    def begin(ports: Ports) -> None:
        take_short_turns()
        _tell({"grpc_port": ports.grpc, "http_port": ports.http})
        watch.beat(loop)
        threading.Thread(target=answer_questions, daemon=True).start()

    await run_gateway(load_settings(), stop, begin)


if __name__ == "__main__":
    set_up_logs("text", "WARNING")
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
