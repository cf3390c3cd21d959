"""The floor of the HTTP benchmarks: the gateway's own frameworks with nothing behind them.

`python -m bench.http_floor PORT` serves a FastAPI route and a Connect method that only answer, on the gateway's loop.
"""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from typing import Any

import uvicorn
import uvloop
from fastapi import FastAPI
from ordergateway.v1 import orders_connect, orders_pb2
from pydantic import BaseModel


class Order(BaseModel):
    """What the benchmark submits."""

    task_id: str
    site: str
    intent: dict[str, Any]


class Echo(orders_connect.OrderService):
    """The one method that the benchmark calls."""

    async def submit_order(self, request: orders_pb2.SubmitOrderRequest, ctx: Any, /) -> orders_pb2.SubmitOrderResponse:
        """The echo."""
        return orders_pb2.SubmitOrderResponse(
            task_id=request.task_id, status=orders_pb2.TASK_STATUS_QUEUED, created=True, intent_matches=True
        )


class Server(uvicorn.Server):
    """A server that leaves the signals alone."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing is captured."""
        yield


def app() -> FastAPI:
    """The two echoes."""
    made = FastAPI()

    @made.post("/api/orders")
    async def submit(order: Order) -> dict[str, Any]:
        data = {"task_id": order.task_id, "status": "queued", "created": True, "intent_matches": True}
        return {"success": True, "msg": "ok", "data": data, "code": 0}

    @made.get("/livez")
    async def livez() -> None:
        return None

    connect: Any = orders_connect.OrderServiceASGIApplication(Echo())
    made.mount("/ordergateway.v1.OrderService", connect)
    return made


async def serve(port: int) -> None:
    """Serves on a loopback port until SIGTERM."""
    server = Server(uvicorn.Config(app(), port=port, http="h11", log_level="warning", access_log=False, lifespan="off"))

    def end() -> None:
        server.should_exit = True

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    await server.serve()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1])))
