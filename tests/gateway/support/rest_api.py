"""The gateway as a client sees it over REST: through httpx, or byte by byte."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx


@asynccontextmanager
async def rest_client(port: int, token: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the HTTP port."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30) as client:
        yield client


def envelope_of(answer: httpx.Response) -> dict[str, Any]:
    """The envelope of an answer, whose form is checked."""
    told: dict[str, Any] = answer.json()
    assert list(told) == ["success", "msg", "data", "code"]
    assert answer.headers["content-type"] == "application/json"
    assert told["success"] is (told["code"] == 0)
    assert isinstance(told["msg"], str)
    if not told["success"]:
        assert told["data"] is None
        assert told["code"] == answer.status_code or 6001 <= told["code"] <= 6006
    return told


def data_of(answer: httpx.Response) -> Any:
    """The data of an answer that must be a success."""
    told = envelope_of(answer)
    assert answer.status_code == 200, told
    assert told["success"], told
    return told["data"]


async def post(client: httpx.AsyncClient, path: str, body: Any) -> httpx.Response:
    """Post JSON; text and bytes go as they are."""
    content = body if isinstance(body, str | bytes) else json.dumps(body)
    return await client.post(path, content=content, headers={"Content-Type": "application/json"})


async def submit(client: httpx.AsyncClient, task_id: str = "po-1", site: str = "rakuten", **intent: Any) -> Any:
    return data_of(await post(client, "/api/orders", {"task_id": task_id, "site": site, "intent": intent}))


async def lease(client: httpx.AsyncClient, worker_id: str = "w1", wait: float = 0, **parameters: Any) -> Any:
    answer = await client.get("/api/orders/lease", params={"worker_id": worker_id, "wait": wait} | parameters)
    return data_of(answer)


async def task(client: httpx.AsyncClient, task_id: str = "po-1") -> Any:
    return data_of(await client.get(f"/api/orders/{task_id}"))


async def exchange(port: int, request: bytes) -> bytes:
    """Send bytes over a connection of their own and return all that comes back until its end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        await writer.drain()
        return await asyncio.wait_for(reader.read(), 60)
    finally:
        writer.close()


def body_of(answer: bytes) -> dict[str, Any]:
    """The JSON body of a raw answer."""
    told: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    return told
