"""The parts as processes of their own for one test: the gateway, workers, an upstream; the shop runs in the test."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from ordergateway.v1 import operations_pb2, orders_pb2
from ordergateway.v1.operations_pb2_grpc import OperationsServiceStub
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from demo.programs import free_port
from tests.worker.running_shop import RunningShop, running_shop
from tests.worker.virtual import ManualClock
from worker.journal.journal import Journal

COMMANDS = Path(sys.executable).parent
TOKEN = "end-to-end-token"
ENDED = (orders_pb2.TASK_STATUS_SUCCEEDED, orders_pb2.TASK_STATUS_FAILED, orders_pb2.TASK_STATUS_NEEDS_HUMAN)
STALE = orders_pb2.TASK_STATUS_STALE

GATEWAY_SETTINGS = {
    "RAKUTEN_SITES": "rakuten,sandbox",
    "RAKUTEN_GATEWAY_PORT": "0",
    "RAKUTEN_API_TOKEN": TOKEN,
    "RAKUTEN_PERMIT_TTL_SECONDS": "4",
    "RAKUTEN_PERMIT_SETTLE_SECONDS": "0.3",
    "RAKUTEN_SWEEP_INTERVAL_SECONDS": "0.1",
}


@dataclass
class Parts:
    """A running gateway and shop, and the means to start workers and to be the upstream."""

    folder: Path
    target: str
    shop: RunningShop
    orders: Any
    operations: Any
    stack: AsyncExitStack
    settings: dict[str, str] = field(default_factory=dict)

    def worker_settings(self) -> dict[str, str]:
        return {
            "RAKUTEN_ORDER_GATEWAY_URL": f"grpc://{self.target}",
            "RAKUTEN_API_TOKEN": TOKEN,
            "RAKUTEN_WORKER_ID": "worker-1",
            "RAKUTEN_SANDBOX_URL": self.shop.url,
            "RAKUTEN_SCREENSHOTS": "false",
            "RAKUTEN_ORDER_MAX_TOTAL_YEN": "100000",
            "RAKUTEN_LOST_ANSWER_LOOK_SECONDS": "0.5",
            "RAKUTEN_LOST_ANSWER_INTERVAL_SECONDS": "0.1",
        } | self.settings

    async def worker(self, *command: str, **settings: str) -> asyncio.subprocess.Process:
        """Starts `order-worker run`, or the command given, and ends it with the test."""
        arguments = command or (str(COMMANDS / "order-worker"), "run")
        return await started(self.stack, self.folder, arguments, self.worker_settings() | settings)

    async def crashing_worker(self, at: str, number: signal.Signals = signal.SIGKILL) -> asyncio.subprocess.Process:
        return await self.worker(sys.executable, "-m", "tests.e2e.crashing_worker", at, number.name)

    async def submit(self, task_id: str = "po-1", code: str = "sencha-100g", **intent: Any) -> None:
        body = json.dumps({"item_url": self.shop.item_url(code), "quantity": 2} | intent)
        request = orders_pb2.SubmitOrderRequest(task_id=task_id, site="sandbox", intent_json=body)
        await self.orders.SubmitOrder(request, metadata=AUTHORIZED, timeout=30)

    async def until(self, *statuses: int, task_id: str = "po-1", seconds: float = 60) -> orders_pb2.Task:
        """The task once it is in one of these statuses."""
        request = orders_pb2.WatchOrderRequest(task_id=task_id)
        async with asyncio.timeout(seconds):
            async for message in self.orders.WatchOrder(request, metadata=AUTHORIZED):
                if message.HasField("task") and message.task.status in statuses:
                    return message.task  # type: ignore[no-any-return]
        raise AssertionError("the watch ended before")

    async def expire(self, task_id: str = "po-1") -> None:
        """The operator says that the worker is dead."""
        request = operations_pb2.ExpireOrderRequest(task_id=task_id, reason="the test has killed the worker")
        await self.operations.ExpireOrder(request, metadata=AUTHORIZED, timeout=30)

    async def reclaim(self, task_id: str = "po-1", journal: str = "data/trading.db") -> None:
        """Files the wish that `order-worker reclaim` files."""
        book = await Journal.open_beside(self.folder / journal, clock=ManualClock())
        await book.reclaims.file(task_id)
        await book.close()

    async def counted(self) -> tuple[int, int, int]:
        """What the shop counted: orders, units, payments."""
        counters = await self.shop.control.counters()
        return counters["orders_placed"], counters["units_sold"], counters["payments_made"]


AUTHORIZED = (("authorization", f"Bearer {TOKEN}"),)


async def started(
    stack: AsyncExitStack, folder: Path, command: tuple[str, ...], settings: dict[str, str]
) -> asyncio.subprocess.Process:
    """A process in that folder with these settings and no others; its log lies there too."""
    environment = {key: value for key, value in os.environ.items() if not key.upper().startswith("RAKUTEN_")}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[2]), **settings}
    log = stack.enter_context((folder / "parts.log").open("ab"))
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=log,
    )
    stack.push_async_callback(ended, process)
    return process


async def ended(process: asyncio.subprocess.Process) -> int:
    """Ends a process, also a frozen one, and waits for it."""
    if process.returncode is None:
        process.send_signal(signal.SIGCONT)
        process.terminate()
        try:
            await asyncio.wait_for(process.communicate(), 30)
        except TimeoutError:
            process.kill()
    await process.communicate()
    return process.returncode or 0


async def passed(process: asyncio.subprocess.Process, failpoint: str, seconds: float = 60) -> None:
    """Returns once the crashing worker has printed that failpoint."""
    assert process.stdout is not None
    async with asyncio.timeout(seconds):
        async for line in process.stdout:
            if line.decode().strip() == failpoint:
                return
    raise AssertionError(f"the worker ended before {failpoint}")


async def first_of(*waiting: Coroutine[Any, Any, Any], seconds: float) -> None:
    """Returns once one of these is done."""
    tasks = [asyncio.ensure_future(each) for each in waiting]
    done, left = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
    assert done, f"nothing happened for {seconds} s"


@asynccontextmanager
async def running_parts(folder: Path, **gateway_settings: str) -> AsyncIterator[Parts]:
    """The gateway and the shop; everything started is ended."""
    async with AsyncExitStack() as stack:
        target = f"127.0.0.1:{free_port()}"
        settings = GATEWAY_SETTINGS | {"RAKUTEN_GATEWAY_GRPC_PORT": target.rpartition(":")[2]} | gateway_settings
        gateway = await started(stack, folder, (str(COMMANDS / "order-gateway"), "serve"), settings)
        shop = await stack.enter_async_context(running_shop())
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(target))
        await first_of(channel.channel_ready(), gateway.wait(), seconds=60)
        assert gateway.returncode is None, (folder / "parts.log").read_text()
        yield Parts(folder, target, shop, OrderServiceStub(channel), OperationsServiceStub(channel), stack)
