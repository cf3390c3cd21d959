"""Submissions while the gateway is killed again and again: each is filed once, and no caller learns of it."""

import asyncio
import random
import socket
from pathlib import Path

import pytest
from ordergateway.client import AsyncClient, Client
from ordergateway.v1 import orders_pb2

from tests.gateway.support.process import gateway_process

SUBMITS = 200
CALLERS = 4


def free_port() -> int:
    """A port below those that the system gives to connections, so that none of them can take it between two lives."""
    for port in random.sample(range(20_000, 32_000), 100):
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("no port is free")


async def killed_and_restarted(
    folder: Path, port: int, kills: int, progress: "asyncio.Queue[str]", last: asyncio.Event
) -> None:
    """Kill it after each share of the submissions, and start it anew; `last`: that one goes on until cancelled."""
    for _ in range(kills):
        async with gateway_process(folder, gateway_grpc_port=str(port)) as running:
            for _ in range(SUBMITS // (kills + 1)):
                await progress.get()
            running.kill()
            await running.wait()
    async with gateway_process(folder, gateway_grpc_port=str(port)):
        last.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.extended)])
@pytest.mark.timeout(300)
async def test_submits_through_kills_make_one_task_each(tmp_path: Path, kind: str, kills: int) -> None:
    port = free_port()
    progress: asyncio.Queue[str] = asyncio.Queue()
    last = asyncio.Event()
    lives = asyncio.create_task(killed_and_restarted(tmp_path, port, kills, progress, last))
    numbers = iter(range(SUBMITS))
    url = f"grpc://127.0.0.1:{port}"
    blocking, awaited = Client(url, timeout=240), AsyncClient(url, timeout=240)

    async def submit_some() -> None:
        for number in numbers:
            if kind == "asyncio":
                answer = await awaited.submit(f"po-{number}", "sandbox", {"number": number})
            else:
                answer = await asyncio.to_thread(blocking.submit, f"po-{number}", "sandbox", {"number": number})
            assert answer.intent_matches
            progress.put_nowait(answer.task_id)

    watched = asyncio.create_task(statuses(awaited, "po-0"))
    try:
        async with asyncio.timeout(280):
            await asyncio.gather(*(submit_some() for _ in range(CALLERS)))
            await last.wait()
            tasks = [task async for task in awaited.list()]
            assert sorted(task.task_id for task in tasks) == sorted(f"po-{number}" for number in range(SUBMITS))
            assert all(task.intent_json == f'{{"number": {task.task_id[3:]}}}' for task in tasks)
            await awaited.cancel("po-0", "the end of the test")
            assert await watched == [orders_pb2.TASK_STATUS_QUEUED, orders_pb2.TASK_STATUS_FAILED]
        assert not lives.done()
    finally:
        for each in (lives, watched):
            each.cancel()
        await asyncio.gather(lives, watched, return_exceptions=True)
        blocking.close()
        await awaited.close()


async def statuses(client: AsyncClient, task_id: str) -> list[int]:
    """The changes of a task over all lives of the gateway. It may not be filed yet: it is awaited by submitting it."""
    await client.submit(task_id, "sandbox", {"number": 0})
    return [task.status async for task in client.watch(task_id)]
