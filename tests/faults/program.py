"""A program that is killed, frozen and started again, as often as a test wants it."""

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

PATIENCE_SECONDS = 90.0


async def until(true: Callable[[], Any]) -> None:
    """Looks until it is so."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while True:
            if true():
                return
            await asyncio.sleep(0.02)


class Program:
    """One of the two programs, started again as often as it is killed."""

    def __init__(self, name: str, folder: Path, settings: dict[str, str]) -> None:
        """`name`: gateway, gateway-2, worker; its log is called so."""
        self.name = name
        self._folder = folder
        self._settings = settings
        self._process: asyncio.subprocess.Process | None = None
        self.starts = 0

    @property
    def is_up(self) -> bool:
        return self._process is not None and self._process.returncode is None

    @property
    def ended_with(self) -> int | None:
        return None if self._process is None else self._process.returncode

    async def start(self) -> None:
        root = Path(__file__).parents[2]
        log = self._folder / f"{self.name}.log"
        with log.open("ab") as written:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "tests.faults.armed", self.name.partition("-")[0],
                cwd=self._folder,
                env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{root}:{root / 'clients/python'}", **self._settings},
                stdin=asyncio.subprocess.PIPE, stdout=written, stderr=written,
            )  # fmt: skip
        self.starts += 1

    @property
    def last_words(self) -> str:
        """What its log ends with."""
        return self._log[-1_500:]

    @property
    def _log(self) -> str:
        return (self._folder / f"{self.name}.log").read_text(errors="replace")

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_frozen(self) -> bool:
        """Whether a SIGSTOP has taken effect."""
        with suppress(psutil.NoSuchProcess):
            return self.is_up and psutil.Process(self.pid).status() == psutil.STATUS_STOPPED
        return False

    async def until_frozen(self) -> None:
        """Returns once it stands still."""
        await until(lambda: self.is_frozen)

    def arm(self, place: str, number: signal.Signals = signal.SIGKILL) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.write(f"{place} {number.name}\n".encode())

    async def armed(self, place: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Arms it, and returns once that is so."""
        line = f"armed {place}\n"
        before = self._log.count(line)
        self.arm(place, number)
        await until(lambda: self._log.count(line) > before)

    def send(self, number: signal.Signals) -> None:
        if self.is_up and self._process is not None:
            self._process.send_signal(number)

    async def wait(self) -> int:
        assert self._process is not None
        return await asyncio.wait_for(self._process.wait(), PATIENCE_SECONDS)

    async def end(self) -> None:
        if self._process is None:
            return
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()
            with suppress(OSError):
                await self._process.stdin.wait_closed()
