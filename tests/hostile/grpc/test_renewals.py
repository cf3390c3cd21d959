"""Certificates that are renewed every second, under a flood of handshakes: nobody is refused, and nothing ends."""

import asyncio
import itertools
import shutil
import sys
from pathlib import Path

import psutil
import pytest
from ordergateway.v1.order_leases_pb2 import LeaseOrdersRequest
from ordergateway.v1.order_leases_pb2_grpc import OrderLeaseServiceStub

from tests.gateway.api.test_auth import certificates
from tests.gateway.api.test_http_tls import new_certificate
from tests.gateway.support.grpc_api import duration
from tests.gateway.support.process import GatewayProcess
from tests.hostile.grpc.flood import MIB, besieged, channel_to

__all__ = ["certificates"]

MOST_GROWTH_MIB = 200
RENEWED = "sweep=certificates renewed=1"


@pytest.mark.timeout(300)
async def test_a_flood_of_handshakes_at_a_renewal_is_borne(certificates: Path) -> None:
    await is_borne(certificates, valid=1_000, bare=2_000)


@pytest.mark.extended
@pytest.mark.timeout(1200)
async def test_a_longer_flood_of_handshakes_is_borne(certificates: Path) -> None:
    await is_borne(certificates, valid=15_000, bare=30_000)


async def is_borne(folder: Path, *, valid: int, bare: int) -> None:
    """`valid` handshakes on each port and `bare` connections to the gRPC port, while a lease stream waits."""
    await new_certificate(folder)
    async with besieged(folder, tls=True, worker_token="the-token-of-the-worker") as gateway:
        process = psutil.Process(gateway.process.pid)
        before = process.memory_info().rss
        async with channel_to(gateway, folder, tls=True) as channel:
            stub: OrderLeaseServiceStub = OrderLeaseServiceStub(channel)
            request = LeaseOrdersRequest(
                worker_id="w1", session_id="session-of-worker-1", journal_id="journal-of-worker-1", sites=["sandbox"],
                wait=duration(60),
            )  # fmt: skip
            waiting = stub.LeaseOrders(request, metadata=(("authorization", "Bearer the-token-of-the-worker"),))
            assert (await waiting.read()).HasField("heartbeat")
            renewing = asyncio.create_task(renew_on(folder))
            try:
                authority = str(folder / "ca.pem")
                async with asyncio.TaskGroup() as clients:
                    for arguments in (
                        ("handshakes", str(gateway.port), str(valid), authority, "h2"),
                        ("handshakes", str(gateway.http_port), str(valid), authority, "http/1.1"),
                        ("attacks", "connections_closed_at_once", str(gateway.port), str(bare)),
                    ):
                        clients.create_task(succeeds(*arguments))
                await renewed_often(gateway)
            finally:
                renewing.cancel()
            # The stream that was open before is the same connection still.
            assert (await waiting.read()) is not None
            waiting.cancel()
        growth = (process.memory_info().rss - before) / MIB
        assert growth < MOST_GROWTH_MIB
        assert gateway.process.returncode is None
        assert await gateway.terminate() == 0


async def succeeds(program: str, *arguments: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", f"tests.hostile.grpc.{program}", *arguments,
        stdin=asyncio.subprocess.DEVNULL, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert await process.wait() == 0, (program, arguments)


async def renewed_often(gateway: GatewayProcess) -> None:
    async with asyncio.timeout(30):
        while gateway.log.count(RENEWED) < 2:  # noqa: ASYNC110 - the line in the log is the signal
            await asyncio.sleep(0.1)


async def renew_on(folder: Path) -> None:
    """Put one pair and the other in place, again and again, each file in one step."""
    for name in ("server", "renewed"):
        for kind in ("key", "pem"):
            shutil.copy(folder / f"{name}.{kind}", folder / f"{name}-kept.{kind}")
    for name in itertools.cycle(("renewed", "server")):
        for kind in ("key", "pem"):
            shutil.copy(folder / f"{name}-kept.{kind}", folder / f"next.{kind}")
            (folder / f"next.{kind}").replace(folder / f"server.{kind}")
        await asyncio.sleep(1)
