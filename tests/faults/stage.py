"""All that runs in a chaos test: a shop that counts, a worker, one gateway on its file or several on a real server."""

import random
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from demo.programs import free_port
from tests.e2e.parts import GATEWAY_SETTINGS, TOKEN
from tests.faults.database_proxy import DatabaseProxy
from tests.faults.program import Program
from tests.faults.promises import Database
from tests.faults.proxy import FaultyProxy
from tests.gateway.support.postgres import Server, own_server
from tests.worker.running_shop import RunningShop, running_shop

LEASE_SECONDS = 2.5
SETTLE_SECONDS = 0.3
DATABASE = "orders"

SETTINGS = GATEWAY_SETTINGS | {
    "RAKUTEN_LEASE_TTL_SECONDS": str(LEASE_SECONDS),
    "RAKUTEN_LEASE_ACK_SECONDS": str(LEASE_SECONDS),
    "RAKUTEN_PERMIT_SETTLE_SECONDS": str(SETTLE_SECONDS),
}


@dataclass(frozen=True)
class GatewayPart:
    """A gateway, how callers reach it, and its way to the database; None: that is a file of its own."""

    program: Program
    channel: grpc.aio.Channel
    way: DatabaseProxy | None = None


@dataclass
class Stage:
    """Everything that runs. `proxy` is the way from the worker to the gateways, each connection to another one."""

    folder: Path
    chance: random.Random
    shop: RunningShop
    proxy: FaultyProxy
    gateways: list[GatewayPart]
    worker: Program
    journal: Path
    database: Database
    server: Server | None
    settings: dict[str, str]
    figures: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    @property
    def programs(self) -> list[Program]:
        return [*(gateway.program for gateway in self.gateways), self.worker]


@asynccontextmanager
async def running_stage(
    folder: Path, seed: int, of_gateway: dict[str, str], of_worker: dict[str, str], gateways: int | None
) -> AsyncIterator[Stage]:
    """Everything but the programs, which whoever keeps them up starts; nothing of it is left.

    `gateways` None: one, on a SQLite file; else so many on a PostgreSQL server of this test.
    """
    async with AsyncExitStack() as stack:
        server = None if gateways is None else stack.enter_context(own_server())
        if server is not None:
            server.execute(f"CREATE DATABASE {DATABASE}")
        shop = await stack.enter_async_context(running_shop())
        ports = [free_port() for _ in range(gateways or 1)]
        parts = [
            await _gateway(stack, folder, number, port, server, of_gateway) for number, port in enumerate(ports, 1)
        ]
        proxy = await stack.enter_async_context(FaultyProxy(*ports))
        journal = Path(of_worker.get("RAKUTEN_TRADING_DB_PATH", folder / "data" / "trading.db"))
        database: Database = folder / "data" / "gateway.db" if server is None else server.url(DATABASE)
        worker = Program("worker", folder, worker_settings(proxy.port, shop) | of_worker)
        stack.push_async_callback(worker.end)
        # Reproducible as far as processes are.
        chance = random.Random(seed)  # noqa: S311
        yield Stage(folder, chance, shop, proxy, parts, worker, journal, database, server, SETTINGS | of_gateway)


async def _gateway(
    stack: AsyncExitStack, folder: Path, number: int, port: int, server: Server | None, further: dict[str, str]
) -> GatewayPart:
    settings = SETTINGS | {"RAKUTEN_GATEWAY_GRPC_PORT": str(port)} | further
    way = None
    if server is not None:
        way = await stack.enter_async_context(DatabaseProxy(server.socket))
        settings["RAKUTEN_GATEWAY_DB_URL"] = f"postgresql://gateway@127.0.0.1:{way.port}/{DATABASE}"
    program = Program("gateway" if number == 1 else f"gateway-{number}", folder, settings)
    stack.push_async_callback(program.end)
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.max_reconnect_backoff_ms", 200)])
    await stack.enter_async_context(channel)
    return GatewayPart(program, channel, way)


def worker_settings(port: int, shop: RunningShop) -> dict[str, str]:
    return {
        "RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{port}",
        "RAKUTEN_API_TOKEN": TOKEN,
        "RAKUTEN_WORKER_ID": "worker-1",
        "RAKUTEN_SANDBOX_URL": shop.url,
        "RAKUTEN_SCREENSHOTS": "false",
        "RAKUTEN_ORDER_MAX_TOTAL_YEN": "100000",
        "RAKUTEN_LOST_ANSWER_LOOK_SECONDS": "0.5",
        "RAKUTEN_LOST_ANSWER_INTERVAL_SECONDS": "0.1",
    }
