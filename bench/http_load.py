"""The load over HTTP: one client process. `python -m bench.http_load KIND PORT AMOUNT` prints one line of JSON.

    rest SECONDS      32 callers submit over REST as fast as they are answered        {"per_second": ...}
    connect SECONDS   32 callers submit over Connect, binary messages                 {"per_second": ...}
    idle COUNT        so many long polls wait, each opened again when it ends         until ended

The client is bare sockets, so that it costs little beside the server. A wrong answer ends the run.
"""

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Final

from ordergateway.v1 import orders_pb2

from bench.load import CALLERS, TOKEN, WARM_UP_SECONDS, intent_of

LENGTH: Final = b"content-length: "


async def answer(reader: asyncio.StreamReader) -> bytes:
    """The body of the next answer. Raises RuntimeError unless its status is 200."""
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(f"unexpected answer: {head.decode()}")
    length = head.lower().partition(LENGTH)[2].partition(b"\r\n")[0]
    if length:
        return await reader.readexactly(int(length))
    chunks = []
    while size := int(await reader.readline(), 16):
        chunks.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(chunks)


def post(path: str, content_type: str, body: bytes) -> bytes:
    """A request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def over_rest() -> tuple[bytes, Callable[[bytes], bool]]:
    """A submission, and what its answer must be."""
    task_id = uuid.uuid4().hex
    body = f'{{"task_id": "{task_id}", "site": "sandbox", "intent": {intent_of(task_id)}}}'.encode()

    def is_right(told: bytes) -> bool:
        data = json.loads(told)["data"]
        return bool(data["task_id"] == task_id and data["created"])

    return post("/api/orders", "application/json", body), is_right


def over_connect() -> tuple[bytes, Callable[[bytes], bool]]:
    """A submission, and what its answer must be."""
    task_id = uuid.uuid4().hex
    order = orders_pb2.SubmitOrderRequest(task_id=task_id, site="sandbox", intent_json=intent_of(task_id))

    def is_right(told: bytes) -> bool:
        done = orders_pb2.SubmitOrderResponse.FromString(told)
        return done.task_id == order.task_id and done.created

    request = post("/ordergateway.v1.OrderService/SubmitOrder", "application/proto", order.SerializeToString())
    return request, is_right


async def submit(make: Callable[[], tuple[bytes, Callable[[bytes], bool]]], port: int, seconds: float) -> None:
    """32 callers, each on a connection of its own."""
    done = 0
    counted_from = time.perf_counter() + WARM_UP_SECONDS
    until = counted_from + seconds

    async def caller() -> None:
        nonlocal done
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while (now := time.perf_counter()) < until:
            request, is_right = make()
            writer.write(request)
            if not is_right(await answer(reader)):
                raise RuntimeError("a wrong answer to a submission")
            done += now >= counted_from
        writer.close()

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    print(json.dumps({"per_second": done / (time.perf_counter() - counted_from)}))


async def idle(port: int, count: float) -> None:
    """Long polls that get nothing."""
    opening = asyncio.Semaphore(100)
    request = (
        "GET /api/orders/lease?worker_id=bench&wait=60 HTTP/1.1\r\n"
        f"Host: 127.0.0.1\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
    ).encode()

    async def worker() -> None:
        async with opening:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            await writer.drain()
        while True:
            if json.loads(await answer(reader))["data"] is not None:
                raise RuntimeError("a lease from an empty queue")
            writer.write(request)

    async with asyncio.TaskGroup() as workers:
        for _ in range(int(count)):
            workers.create_task(worker())


KINDS: Final[dict[str, Callable[[int, float], Awaitable[None]]]] = {
    "rest": lambda port, seconds: submit(over_rest, port, seconds),
    "connect": lambda port, seconds: submit(over_connect, port, seconds),
    "idle": idle,
}


async def run(kind: str, port: int, amount: float) -> None:
    """Runs one kind of load, which prints what it measured."""
    await KINDS[kind](port, amount)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
