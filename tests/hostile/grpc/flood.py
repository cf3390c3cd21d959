"""A gateway under one attack, seen from outside: what it holds, and how long an honest caller waits meanwhile."""

import asyncio
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import psutil
from ordergateway.v1 import operations_pb2
from ordergateway.v1.operations_pb2_grpc import OperationsServiceStub

from tests.gateway.support.process import GatewayProcess, gateway_process
from tests.hostile.grpc.attacks import TOKENS, Row
from tests.hostile.grpc.honest import Lister, SlowReader
from tests.hostile.grpc.http2 import Connection

MIB = 1024 * 1024
HONEST_TOKEN = "another-token-of-more-than-sixteen-letters"
HONEST_SECONDS = 30.0
"""How long an honest call may take before it counts as failed."""


@dataclass
class Found:
    """What an attack brought about. Times in seconds."""

    growth_mib: float
    slowest_call: float
    honest_calls: int
    open_calls: int
    log: str
    slowest_list: float = 0.0
    lists: int = 0
    slowly_read: int = 0


@asynccontextmanager
async def besieged(folder: Path, *, tls: bool, **more: str) -> AsyncIterator[GatewayProcess]:
    """The program with a token, with the certificates of `folder` if it is to speak TLS."""
    files = {"gateway_tls_cert": folder / "server.pem", "gateway_tls_key": folder / "server.key"} if tls else {}
    settings = {name: str(path) for name, path in files.items()} | {
        "upstream_token": ",".join(TOKENS),
        "operator_token": HONEST_TOKEN,
    }
    async with gateway_process(folder, **settings, **more) as gateway:
        yield gateway


def channel_to(gateway: GatewayProcess, folder: Path, *, tls: bool) -> grpc.aio.Channel:
    options = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0))
    if not tls:
        return grpc.aio.insecure_channel(f"127.0.0.1:{gateway.port}", options=options)
    credentials = grpc.ssl_channel_credentials((folder / "ca.pem").read_bytes())
    return grpc.aio.secure_channel(f"localhost:{gateway.port}", credentials, options=options)


class Honest:
    """Asks for the gateway's health, again and again. Every call must succeed."""

    def __init__(self, channel: grpc.aio.Channel, memory: Callable[[], int] = lambda: 0) -> None:
        self._memory = memory
        self.most_memory = 0
        self._stub: OperationsServiceStub = OperationsServiceStub(channel)
        self.calls = 0
        self.slowest = 0.0

    async def ask(self) -> None:
        begun = time.monotonic()
        request = operations_pb2.GetHealthRequest()
        metadata = (("authorization", f"Bearer {HONEST_TOKEN}"),)
        await self._stub.GetHealth(request, metadata=metadata, timeout=HONEST_SECONDS)
        self.slowest = max(self.slowest, time.monotonic() - begun)
        self.calls += 1

    async def ask_on(self, until: asyncio.Event) -> None:
        while not until.is_set():
            await self.ask()
            self.most_memory = max(self.most_memory, self._memory())
            await asyncio.sleep(0.005)


async def attacked(row: Row, amount: int, folder: Path) -> Found:
    """Run one attack on a gateway of its own. Raises grpc.aio.AioRpcError if an honest call fails."""
    async with (
        besieged(folder, tls=row.tls) as gateway,
        channel_to(gateway, folder, tls=row.tls) as channel,
        channel_to(gateway, folder, tls=row.tls) as another,
    ):
        lister, slow = Lister(another), await Connection.open(gateway.port)
        slow_reader = SlowReader(slow)
        process = psutil.Process(gateway.process.pid)
        honest = Honest(channel, lambda: process.memory_info().rss)
        for _ in range(50):
            await honest.ask()
        honest.slowest = 0.0
        before = process.memory_info().rss
        over = asyncio.Event()
        asking = [asyncio.create_task(honest.ask_on(over))]
        if row.spares_its_token:
            asking += [asyncio.create_task(lister.ask_on(over)), asyncio.create_task(slow_reader.read_on(over))]
        attack = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.hostile.grpc.attacks", row.name, str(gateway.port), str(amount),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3],
        )  # fmt: skip
        try:
            assert attack.stdout is not None
            assert await asyncio.wait_for(attack.stdout.readline(), 300) == b"holding\n"
            # What was sent has been served when what is sent now has been.
            for _ in range(20):
                await honest.ask()
            growth = honest.most_memory - before
            held = await open_calls(gateway, tls=row.tls)
        finally:
            assert attack.stdin is not None
            attack.stdin.close()
            await attack.wait()
            over.set()
        await asyncio.gather(*asking)
        await honest.ask()
        slow.close()
        assert await gateway.terminate() == 0
        return Found(
            growth / MIB, honest.slowest, honest.calls, held, gateway.log,
            lister.slowest, lister.calls, slow_reader.bytes_read,
        )  # fmt: skip


async def open_calls(gateway: GatewayProcess, *, tls: bool) -> int:
    """How many streams and long polls the gateway counts as open."""
    context = None
    if tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.http_port, ssl=context)
    headers = f"Host: x\r\nConnection: close\r\nAuthorization: Bearer {HONEST_TOKEN}"
    writer.write(f"GET /metrics HTTP/1.1\r\n{headers}\r\n\r\n".encode())
    page = (await reader.read()).decode()
    writer.transport.abort()
    (line,) = (line for line in page.splitlines() if line.startswith("ordergateway_waiting "))
    return int(float(line.split()[1]))
