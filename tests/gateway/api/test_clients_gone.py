"""A client that goes away while it waits gets nothing: cancelled, closed, killed, frozen.

The rule: docs/specification.md#taking-an-order.
"""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.dispatch.stream import HEARTBEAT_SECONDS
from gateway.domain.states import TaskStatus
from tests.gateway.support.core import Core, task_count
from tests.gateway.support.grpc_api import GrpcApi, connected, heartbeat_of
from tests.gateway.support.grpc_core import GrpcCore, grpc_core
from tests.gateway.support.proxy import Proxy


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[GrpcCore]:
    """The core over gRPC, whose inside a test can look at."""
    async with grpc_core(tmp_path / "gateway.db") as core:
        yield core


async def until(holds: Callable[[], object]) -> None:
    """Wait for what gives no signal."""
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - it gives no signal
            await asyncio.sleep(0.005)


async def nobody_waits(core: Core) -> None:
    await until(lambda: not core.dispatcher._waiters)


async def nothing_was_leased(core: Core) -> None:
    await core.submit()
    await core.quiet()
    task = await core.task()
    assert (task.status, task.lease_count) == (TaskStatus.QUEUED, 0)


async def test_a_cancelled_stream_gets_nothing(served: GrpcCore) -> None:
    async with connected(served.port) as api:
        stream = api.stream(wait=30)
        await heartbeat_of(stream)
        stream.cancel()
        await nobody_waits(served.core)
        await nothing_was_leased(served.core)


async def test_a_closed_connection_gets_nothing(served: GrpcCore) -> None:
    async with connected(served.port) as api:
        await heartbeat_of(api.stream(wait=30))
    await nobody_waits(served.core)
    await nothing_was_leased(served.core)


CLIENT = """
import asyncio, sys
from tests.gateway.support.grpc_api import connected, heartbeat_of

async def main():
    async with connected(int(sys.argv[1])) as api:
        stream = api.stream(wait=60)
        await heartbeat_of(stream)
        print("waiting", flush=True)
        print((await stream.read()).WhichOneof("event"), flush=True)

asyncio.run(main())
"""


@asynccontextmanager
async def waiting_client(port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """A client process that waits for an order."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", CLIENT, str(port), stdout=asyncio.subprocess.PIPE, cwd=Path(__file__).parents[3]
    )
    try:
        assert process.stdout is not None
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"waiting\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def test_a_killed_client_gets_nothing(served: GrpcCore) -> None:
    async with waiting_client(served.port) as process:
        await until(lambda: served.core.dispatcher._waiters)
        process.kill()
        await nobody_waits(served.core)
        await nothing_was_leased(served.core)


async def test_a_frozen_client_whose_process_waits_anew_gets_its_order_there(served: GrpcCore) -> None:
    async with waiting_client(served.port) as process:
        process.send_signal(signal.SIGSTOP)
        async with connected(served.port) as api:
            stream = api.stream(wait=30)
            await heartbeat_of(stream)
            await served.core.submit()
            message = await asyncio.wait_for(stream.read(), 60)
            assert message.lease.task_id == "po-1"  # type: ignore[union-attr]


async def test_a_hundred_clients_that_go_at_any_moment_leave_no_stray_lease(served: GrpcCore) -> None:
    """Cancels race with the submission: either the client has the lease in its hand, or nobody has it."""
    async with connected(served.port) as api:
        for number in range(100):
            task_id = f"po-{number}"
            stream = api.stream(wait=30)
            await heartbeat_of(stream)
            reading = asyncio.ensure_future(stream.read())
            submitting = asyncio.create_task(served.core.submit(task_id))
            for _ in range(number % 25):
                await asyncio.sleep(0)
            stream.cancel()
            await submitting
            await asyncio.wait({reading})
            await nobody_waits(served.core)
            await served.core.quiet()
            task = await served.core.task(task_id)
            if task.status is TaskStatus.LEASED:
                # It was on its way: the same process gets it again, and nobody else could have.
                lease = await api.lease()
                assert lease is not None
                assert lease.task_id == task_id
                assert await served.core.task(task_id) == task
            await finish(api, task_id)


async def finish(api: GrpcApi, task_id: str) -> None:
    """Make room for the next round."""
    lease = await api.lease()
    assert lease is not None
    assert (lease.task_id, lease.lease_count) == (task_id, 1)
    await api.renew(lease)
    await api.report(lease, terminal=True)


@pytest.mark.extended
async def test_two_thousand_cancelled_streams_leave_no_waiter_no_subscription_no_task(served: GrpcCore) -> None:
    core = served.core
    async with connected(served.port) as api:
        await api.lease()
        topics = core.notifier.topics()
        with task_count() as more:
            for _ in range(10):
                streams = [api.stream(f"w{number}", wait=60) for number in range(200)]
                await asyncio.gather(*(heartbeat_of(stream) for stream in streams))
                for stream in streams:
                    stream.cancel()
                await nobody_waits(core)
            await asyncio.wait_for(served.server._guard.idle(), 60)
            await until(lambda: more() <= 0)
        assert core.notifier.topics() == topics
        assert not core.dispatcher._latest
        assert not core.dispatcher._superseded
        assert core.rows("SELECT * FROM leases") == []


async def test_a_lease_stream_survives_a_proxy_that_gives_up_on_silence(tmp_path: Path) -> None:
    """The real figures are 10 s and 60 s."""
    assert HEARTBEAT_SECONDS < 60
    heartbeat, idle = 0.05, 2.0
    async with (
        grpc_core(tmp_path / "gateway.db", heartbeat_seconds=heartbeat) as served,
        Proxy(served.port, idle_seconds=idle) as proxy,
        connected(proxy.port) as api,
    ):
        stream = api.stream(wait=30)
        for _ in range(round(1.2 * idle / heartbeat)):
            await heartbeat_of(stream)
        await served.core.submit()
        assert await _lease_in(stream) == "po-1"
        assert proxy.gave_up == 0


async def test_without_heartbeats_that_proxy_would_have_given_up(tmp_path: Path) -> None:
    async with (
        grpc_core(tmp_path / "gateway.db", heartbeat_seconds=60) as served,
        Proxy(served.port, idle_seconds=0.3) as proxy,
        connected(proxy.port) as api,
    ):
        stream = api.stream(wait=30)
        await heartbeat_of(stream)
        await until(lambda: proxy.gave_up)
        stream.cancel()


async def _lease_in(stream: Any) -> str:
    """What a stream brings after its heartbeats."""
    async with asyncio.timeout(60):
        while (message := await stream.read()).WhichOneof("event") != "lease":
            pass
    return str(message.lease.task_id)
