"""Where a situation takes place: a gateway, a shop and the worker, which live as long as the situation."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from ordergateway.v1 import order_leases_pb2 as pb
from ordergateway.v1 import orders_pb2

from conformance.gateway import Bend, Gateway, Order, duration
from conformance.rules import status_name
from conformance.shop import ITEM, WatchedShop, serving
from conformance.story import Visit
from conformance.worker import Worker

SITE: Final = "sandbox"
TOKEN: Final = "a-worker-token-of-the-conformance-kit"  # noqa: S105 - opens nothing but this gateway
ORDER_SECONDS: Final = 60.0
"""How long a worker may take for an order, and to ask for the next one."""

AWAY_SECONDS: Final = 1.0
_MAX_TOTAL_YEN: Final = 5_000
_DEFAULT_END: Final = {
    orders_pb2.ORDER_STATE_PAID: orders_pb2.TASK_STATUS_SUCCEEDED,
    orders_pb2.ORDER_STATE_CANCELLED: orders_pb2.TASK_STATUS_FAILED,
}


class GivenUpError(Exception):
    """The worker did not do what the situation waits for; the message says what."""


class Stage:
    """What a situation has at hand. The orders that it made stand in `orders`."""

    def __init__(self, gateway: Gateway, shop: WatchedShop, worker: Worker, shop_url: str) -> None:
        self.gateway = gateway
        self.shop = shop
        self.orders: list[Order] = []
        self.has_killed = False
        self._worker = worker
        self._shop_url = shop_url
        self._away: asyncio.Task[None] | None = None

    def order(self, **bends: Iterable[Bend]) -> Order:
        """Make an order for one article; `bends`: by method, what is made of the coming calls."""
        intent = {
            "item_url": f"{self._shop_url}/item/sandbox-store/{ITEM}/",
            "quantity": 1,
            "max_total_yen": _MAX_TOTAL_YEN,
        }
        lease = pb.Lease(
            task_id=f"conformance-{len(self.orders) + 1}",
            site=SITE,
            intent_json=json.dumps(intent),
            lease_count=1,
            lease_ttl=duration(60),
            acknowledge_within=duration(30),
        )
        lease.task_created_at.GetCurrentTime()
        made = Order(lease, {method: iter(each) for method, each in bends.items()})
        self.orders.append(made)
        return made

    async def place(self, order: Order) -> Order:
        """Hand an order out and wait until it has ended and the worker asks for the next. Raises GivenUpError."""
        await self.gateway.offer(order)
        await self._until(lambda: order.story.end is not None, "the task was not ended")
        await self._until_idle(order)
        return order

    async def leave(self, order: Order) -> Order:
        """Hand out an order that need not end, and wait until the worker asks for the next. Raises GivenUpError."""
        await self.gateway.offer(order)
        await self._until_idle(order)
        return order

    async def hand_out_again(self, order: Order) -> None:
        """Hand out a lease that the worker has had, and wait until it asks for the next. Raises GivenUpError."""
        handed = len(order.story.leases)
        await self.gateway.offer(order)
        await self._until(lambda: len(order.story.leases) > handed, "no stream was opened")
        await self._until_idle(order)

    async def place_killed(self, order: Order) -> Order:
        """As place, where a bend kills the worker: start it again, and requeue what it does not end by itself."""
        await self.gateway.offer(order)
        await self._until(lambda: self.has_killed, "the worker did not come so far as to be killed")
        streams = len(self.gateway.streams)
        await self._worker.start()
        await self._until(lambda: len(self.gateway.streams) > streams, "no stream was opened after the restart")
        if order.story.end is None:
            order.requeue()
            await self.place(order)
        return order

    async def kill_worker(self, _request: Any) -> None:
        """Kill the worker in the middle of a call."""
        await asyncio.shield(asyncio.ensure_future(self._kill()))

    async def restart_gateway(self, _request: Any) -> None:
        """Break all connections off in the middle of a call, and serve again a second later."""
        self._away = asyncio.ensure_future(self._restart())
        await asyncio.shield(self._away)

    def ends_as(self, order: Order, status: int | None, error_code: int = 0) -> Iterator[str]:
        """Yield what is wrong with the end of a task. `status` None: any end; `error_code` 0: any."""
        end = order.story.end
        if end is None:
            yield "the task was not ended"
            return
        ended_as = end.terminal_status or _DEFAULT_END.get(end.state, orders_pb2.TASK_STATUS_NEEDS_HUMAN)
        if status is not None and ended_as != status:
            yield f"the task ended as {status_name(ended_as)}, not as {status_name(status)}: {end.detail}"
        if error_code and end.error_code != error_code:
            yield f"the end has the error code {end.error_code}, not {error_code}"

    async def _kill(self) -> None:
        await self._worker.kill()
        self.has_killed = True
        await self.gateway.tell()

    async def _restart(self) -> None:
        await self.gateway.stop()
        await asyncio.sleep(AWAY_SECONDS)
        await self.gateway.start()

    async def _until_idle(self, order: Order) -> None:
        def idle() -> bool:
            return not order.waits and len(self.gateway.streams) > order.streams_before

        await self._until(idle, "no further lease stream was opened")

    async def _until(self, reached: Callable[[], bool], what_not: str) -> None:
        over = asyncio.get_running_loop().time() + ORDER_SECONDS
        while not await self.gateway.until(reached, 1.0):
            if self._worker.has_ended:
                raise GivenUpError(f"{what_not}: the worker has ended")
            if asyncio.get_running_loop().time() > over:
                raise GivenUpError(f"{what_not} within {ORDER_SECONDS:.0f} s")


@asynccontextmanager
async def stage(command: list[str], folder: Path) -> AsyncIterator[tuple[Stage, Worker]]:
    """Set a stage up, and start the worker on it. Raises WorkerError where that is not possible."""
    gateway = Gateway(TOKEN)

    def tell(step: str) -> None:
        if gateway.current is not None:
            gateway.current.story.events.append(Visit(asyncio.get_running_loop().time(), step))

    shop = WatchedShop(tell)
    async with serving(shop) as shop_url:
        await gateway.start()
        worker = Worker(command, _environment(gateway.port, shop_url, folder), folder / "worker.log")
        try:
            await worker.start()
            yield Stage(gateway, shop, worker, shop_url), worker
        finally:
            await worker.stop()
            await gateway.stop()


def _environment(port: int, shop_url: str, folder: Path) -> dict[str, str]:
    """Return what the worker is told: in the names of the example clients, and in those of order-worker."""
    return {
        "ORDER_GATEWAY_GRPC": f"127.0.0.1:{port}",
        "ORDER_GATEWAY_WORKER_TOKEN": TOKEN,
        "ORDER_GATEWAY_SHOP": shop_url,
        "ORDER_GATEWAY_JOURNAL": str(folder / "journal"),
        "RAKUTEN_ORDER_GATEWAY_URL": f"grpc://127.0.0.1:{port}",
        "RAKUTEN_WORKER_TOKEN": TOKEN,
        "RAKUTEN_WORKER_ID": f"conformance-{secrets.token_hex(4)}",
        "RAKUTEN_SANDBOX_URL": shop_url,
        "RAKUTEN_TRADING_DB_PATH": str(folder / "trading.db"),
        "RAKUTEN_EVIDENCE_DIR": str(folder / "evidence"),
        "RAKUTEN_SCREENSHOTS": "false",
    }
