"""`python -m tests.hostile.http` attacks a gateway process with every row of the tables, and prints what each has cost.

The rows go into docs/security.md.
"""

import asyncio
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from tests.gateway.support.rest_api import data_of, exchange, post, rest_client, submit
from tests.hostile.http.test_stalls import AT_ONCE, HTTP, TAKEN
from tests.hostile.http.test_unread import ATTACKS, LARGE, TASKS
from tests.hostile.watched import Figures, WatchedGateway, watched_gateway

UNREAD = 30


async def at_once(gateway: WatchedGateway, attack: bytes) -> None:
    """Send it over several connections at once, and read the answers."""
    await asyncio.gather(*(exchange(gateway.http_port, attack) for _ in range(AT_ONCE)))


async def unread(gateway: WatchedGateway, attack: bytes) -> None:
    """Ask for something large over many connections and read nothing, while somebody honest calls."""
    async with AsyncExitStack() as stack, rest_client(gateway.http_port) as client:
        for _ in range(UNREAD):
            _, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port, limit=1024)
            stack.callback(writer.close)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(attack)
        for _ in range(50):
            data_of(await client.get("/health"))


def row(name: str, amount: str, before: Figures, after: Figures) -> str:
    """One line of the table."""
    growth = max(0.0, after.most_memory_mib - before.memory_mib)
    return f"| {name} | {amount} | {after.longest_stall_ms:.0f} | {after.processor_seconds:.2f} | {growth:.0f} |"


async def main() -> None:
    """Run every attack, each in a gateway of its own so that memory is told apart."""
    print("| attack | amount | longest stall, ms | processor, s | growth, MiB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, make) in enumerate(HTTP.items()):
            attack = make()
            place = Path(folder, str(number))
            place.mkdir()
            async with watched_gateway(place) as gateway:
                await at_once(gateway, TAKEN)
                await gateway.begin()
                before = await gateway.figures()
                await at_once(gateway, attack)
                print(row(name, f"{AT_ONCE} at once", before, await gateway.figures()), flush=True)
        full = Path(folder, "full")
        full.mkdir()
        async with watched_gateway(full) as gateway, rest_client(gateway.http_port) as client:
            for number in range(TASKS):
                await submit(client, f"po-{number}", text="x" * LARGE)
                body = {"query_id": f"aq-{number}", "kind": "order_list", "params": {"x": "y" * LARGE}}
                data_of(await post(client, "/api/account/queries", body))
            for name, attack in ATTACKS.items():
                await gateway.begin()
                before = await gateway.figures()
                await unread(gateway, attack)
                print(
                    row(f"{name}, unread", f"{UNREAD}, {TASKS} of 250 KiB", before, await gateway.figures()), flush=True
                )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
