"""The program `order-gateway serve` as a process of its own."""

import asyncio
import os
import re
import signal
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.gateway.support.databases import settings_of

PROGRAM = Path(sys.executable).with_name("order-gateway")
_READY = re.compile(r"order-gateway: gRPC on port (\d+)\norder-gateway: HTTP on port (\d+)")


@dataclass
class GatewayProcess:
    """A running program. `log` is what it has written so far, both streams."""

    process: asyncio.subprocess.Process
    port: int
    http_port: int
    log_path: Path

    @property
    def log(self) -> str:
        return _text(self.log_path)

    def kill(self) -> None:
        """SIGKILL, and nothing is tidied up."""
        self.process.kill()

    async def terminate(self) -> int:
        """SIGTERM; return the exit code."""
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGTERM)
        return await self.wait()

    async def wait(self) -> int:
        return await asyncio.wait_for(self.process.wait(), 60)


def _text(path: Path) -> str:
    return path.read_text()


async def start(folder: Path, tree: Path | None = None, **settings: str) -> tuple[asyncio.subprocess.Process, Path]:
    """Start the program with its log in a file; its settings are lower-case names without the prefix.

    `tree`: the sources of another version of it.
    """
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ} | {
        "PYTHONUNBUFFERED": "1",
        "RAKUTEN_SITES": "rakuten,sandbox",
        **{f"RAKUTEN_{name.upper()}": str(value) for name, value in settings_of(folder / "gateway.db").items()},
        "RAKUTEN_GATEWAY_GRPC_PORT": "0",
        "RAKUTEN_GATEWAY_PORT": "0",
        **{f"RAKUTEN_{name.upper()}": value for name, value in settings.items()},
    }
    command = [str(PROGRAM)]
    if tree is not None:
        command = [sys.executable, "-m", "gateway"]
        environment["PYTHONPATH"] = os.pathsep.join(str(tree / each) for each in (".", "clients/python", "generated"))
    descriptor, name = tempfile.mkstemp(".log", "gateway-", folder)
    try:
        process = await asyncio.create_subprocess_exec(
            *command, "serve", cwd=folder, env=environment, stdout=descriptor, stderr=descriptor
        )
    finally:
        os.close(descriptor)
    return process, Path(name)


async def until_ready(process: asyncio.subprocess.Process, log_path: Path) -> tuple[int, int]:
    """Wait for the lines that tell the ports: gRPC, HTTP."""
    async with asyncio.timeout(60):
        while (ready := _READY.search(_text(log_path))) is None:
            assert process.returncode is None, _text(log_path)
            await asyncio.sleep(0.02)
    return int(ready[1]), int(ready[2])


@asynccontextmanager
async def gateway_process(folder: Path, tree: Path | None = None, **settings: str) -> AsyncIterator[GatewayProcess]:
    """Run the program; on the way out it is stopped, by force if the test has not done so."""
    process, log_path = await start(folder, tree, **settings)
    try:
        yield GatewayProcess(process, *await until_ready(process, log_path), log_path)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def refused_start(folder: Path, **settings: str) -> tuple[int, str]:
    """Run a program that cannot start; return its exit code and all that it said."""
    process, log_path = await start(folder, **settings)
    try:
        return await asyncio.wait_for(process.wait(), 60), _text(log_path)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
