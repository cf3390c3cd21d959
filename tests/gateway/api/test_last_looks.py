"""What is looked at last, in the very turn in which a lease would be handed over or the gateway ends."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway.api.admission import Admission
from gateway.api.auth import Authenticator
from gateway.api.rest.long_poll import LongPoll
from gateway.waiting.desk import Desk
from tests.gateway.support import dump
from tests.gateway.support.in_process import running_gateway


class Lease:
    """A lease to hand over, which notes whether it was."""

    def __init__(self) -> None:
        self.lease = {"task_id": "po-1"}
        self.handed_over = False

    def done(self) -> None:
        self.handed_over = True


async def answered(*, leaves: bool) -> tuple[bool, list[Any]]:
    """What a long poll does whose client leaves, or does not, just as the lease comes."""
    lease, sent = Lease(), []
    lease_comes = asyncio.Event()

    @asynccontextmanager
    async def wait(_gone: "asyncio.Future[Any]") -> AsyncIterator[Lease]:
        lease_comes.set()  # from here on the client's leaving is on its way in
        yield lease

    async def receive() -> dict[str, Any]:
        await lease_comes.wait()
        if not leaves:
            await asyncio.Event().wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    poll = LongPoll(wait, lambda leased: leased, Admission(Authenticator({})), "test")
    await poll({"type": "http", "method": "GET", "headers": []}, receive, send)
    return lease.handed_over, sent


async def test_a_client_that_leaves_just_as_its_lease_comes_is_not_given_it() -> None:
    assert await answered(leaves=True) == (False, [])
    handed_over, sent = await answered(leaves=False)
    assert handed_over
    assert sent[0]["status"] == 200


async def test_a_stop_waits_until_a_lease_that_nobody_took_is_given_back(tmp_path: Path, monkeypatch: Any) -> None:
    """The gateway stops in the turn in which a lease has been made out for a stream."""
    deliver, put_back = Desk._deliver, Desk._put_back
    stops: list[asyncio.Event] = []

    def stop_then(desk: Any, taken: Any) -> None:
        deliver(desk, taken)
        desk._hub.close()
        stops[0].set()

    async def slowly(desk: Any, request: Any, lease: Any) -> None:
        for _ in range(50):  # a slow disk: many turns of the loop
            await asyncio.sleep(0.005)
        await put_back(desk, request, lease)

    monkeypatch.setattr(Desk, "_deliver", stop_then)
    monkeypatch.setattr(Desk, "_put_back", slowly)
    async with running_gateway(tmp_path) as gateway:
        stops.append(gateway.stop)
        stream = gateway.api.stream("w1", 30)
        await stream.read()
        async with asyncio.timeout(10):
            while not gateway.rows("SELECT 1 FROM workers"):  # noqa: ASYNC110 - the row is the signal
                await asyncio.sleep(0.002)
        await gateway.api.submit()
        await asyncio.wait_for(asyncio.shield(gateway.ended), 10)
        stream.cancel()
    (task,) = dump.rows(gateway.path, "SELECT status, lease_count FROM tasks")
    assert task == {"status": "queued", "lease_count": 0}
