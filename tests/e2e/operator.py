"""The person in charge, who types commands in a shell."""

import asyncio
import json
import os
from dataclasses import dataclass
from typing import Any

from tests.e2e.parts import COMMANDS, TOKEN, Parts

SECONDS = 60


@dataclass(frozen=True)
class Typed:
    """What a command line said and ended with."""

    line: str
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@dataclass(frozen=True)
class Operator:
    """Somebody with a shell in the worker's folder, an operator's token and the settings of both machines."""

    parts: Parts

    async def types(self, line: str) -> Typed:
        """Run a command line as it stands."""
        environment = {key: value for key, value in os.environ.items() if not key.upper().startswith("RAKUTEN_")}
        environment |= self.parts.worker_settings() | {
            "PATH": f"{COMMANDS}{os.pathsep}{os.environ['PATH']}",
            "RAKUTEN_ORDER_GATEWAY_URL": f"grpc://{self.parts.target}",
            "RAKUTEN_API_TOKEN": TOKEN,
            "RAKUTEN_SITES": "rakuten,sandbox",
        }
        process = await asyncio.create_subprocess_shell(
            line,
            cwd=self.parts.folder,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(), SECONDS)
        except BaseException:
            process.kill()
            await process.communicate()
            raise
        return Typed(line, process.returncode or 0, out.decode(), err.decode())

    async def must(self, line: str) -> Typed:
        """Run a command line that has to succeed."""
        typed = await self.types(line)
        assert typed.code == 0, typed
        return typed

    async def decision(self) -> dict[str, Any]:
        """The one task that waits for a decision."""
        (decision,) = (await self.must("order-gateway decisions --json")).json["decisions"]
        return decision  # type: ignore[no-any-return]

    async def settled(self, decision: dict[str, Any]) -> None:
        """Wait for as long as the decision says that resolving to failed has to wait."""
        await asyncio.sleep(float(decision.get("settles_in", "0s").removesuffix("s")))
