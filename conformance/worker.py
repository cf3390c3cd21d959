"""The worker that is tried: a command of any language, run as a process group of its own."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

STOP_SECONDS = 15.0
TAIL_LINES = 15


class WorkerError(Exception):
    """The command could not be started; the message says why."""


class Worker:
    """The command, which may be started again after it was stopped or killed."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self._command = command
        # A variable of the caller's own installation must not reach the worker.
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith(("RAKUTEN_", "ORDER_GATEWAY_"))
        }
        self._environment = inherited | environment
        self._log = log
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it. Raises WorkerError."""
        with self._log.open("ab") as output:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *self._command,
                    env=self._environment,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            except OSError as error:
                raise WorkerError(f"{self._command[0]} cannot be started: {error.strerror or error}") from error

    @property
    def has_ended(self) -> bool:
        """True once the process is gone."""
        return self._process is not None and self._process.returncode is not None

    async def kill(self) -> None:
        """End it at once, and all that it has started."""
        self._signal(signal.SIGKILL)
        if self._process is not None:
            await self._process.wait()
        self._process = None

    async def stop(self) -> None:
        """Ask it to end, and end it where it does not."""
        self._signal(signal.SIGTERM)
        if self._process is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(STOP_SECONDS):
                    await self._process.wait()
        await self.kill()

    def tail(self) -> str:
        """Return the last lines that it wrote."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-TAIL_LINES:])

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)
