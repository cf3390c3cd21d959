"""The commands of `order-gateway`, run in a thread against a gateway that serves in the test's event loop."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner

from gateway.cli import app
from tests.gateway.support.grpc_api import GrpcApi

RUNNER = CliRunner()
WHY = ("--reason", "looked at the site")


@dataclass(frozen=True)
class Ran:
    """What a command said and ended with."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Commands:
    """Runs commands with an environment of their own."""

    environment: Mapping[str, str]

    async def run(self, *words: str, given: str | None = None) -> Ran:
        """Run a command and return what came of it."""
        done = await asyncio.to_thread(RUNNER.invoke, app, list(words), input=given, env=dict(self.environment))
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Ran(done.exit_code, done.stdout, done.stderr)

    async def ok(self, *words: str, given: str | None = None) -> Ran:
        """Run a command that must succeed."""
        ran = await self.run(*words, given=given)
        assert ran.code == 0, (words, ran)
        return ran


async def stale(api: GrpcApi, commands: Commands, task_id: str = "po-1") -> None:
    """Make a task that was taken and whose lease has ended."""
    await api.take(task_id, session_id=f"session-that-took-{task_id}")
    await commands.ok("expire", task_id, *WHY)
