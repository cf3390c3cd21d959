"""Prints the OpenAPI document of the documented JSON contract; docs/openapi.json is its committed copy."""

import asyncio
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx

from gateway.main import Ports, run_gateway
from gateway.settings import Settings


def main() -> None:
    """Prints the document as the gateway serves it."""
    document = asyncio.run(served_document())
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


async def served_document() -> Any:
    """The document as a gateway with default settings serves it."""
    stop = asyncio.Event()
    ready: asyncio.Future[Ports] = asyncio.get_running_loop().create_future()
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(
            _env_file=None, gateway_db_path=Path(folder) / "gateway.db", gateway_port=0, gateway_grpc_port=0
        )
        running = asyncio.create_task(run_gateway(settings, stop, ready.set_result))
        either: set[asyncio.Future[Any]] = {running, ready}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{ready.result().http}", trust_env=False) as client:
            answer = await client.get("/openapi.json")
        stop.set()
        await running
    return answer.json()


if __name__ == "__main__":
    main()
