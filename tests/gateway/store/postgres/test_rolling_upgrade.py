"""Two gateways of the former version are replaced by this one under submits and leases: nothing lost, nothing twice.

The former version is the real one, from the tree's history, at schema 11.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import grpc
import pytest

from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState
from gateway.store.postgres.schema import program
from tests.gateway.store.postgres.test_race import contradictions
from tests.gateway.support import former, postgres
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError, connected
from tests.gateway.support.process import PROGRAM, GatewayProcess, gateway_process

pytestmark = [pytest.mark.needs("postgresql", "history"), pytest.mark.extended, pytest.mark.timeout(900)]

T = TypeVar("T")

FORMER = 11


@pytest.fixture
def empty() -> Iterator[str]:
    url = postgres.new_database("template1")
    yield url
    postgres.drop_database(url)


class Load:
    """An upstream and workers, which go to whichever gateway answers, and what they were told."""

    def __init__(self) -> None:
        self.gateways: dict[int, GrpcApi] = {}
        self.told: dict[str, list[Any]] = {"submitted": [], "leased": [], "permitted": [], "ended": []}
        self.stopping = False
        self._turns = itertools.count()
        self._done = asyncio.Event()

    async def call(self, run: Callable[[GrpcApi], Awaitable[T]]) -> T:
        """Call one gateway after the other until one answers; the same again after a lost answer changes nothing."""
        while True:
            apis = list(self.gateways.values())
            api = apis[next(self._turns) % len(apis)]
            try:
                return await run(api)
            except grpc.aio.AioRpcError as error:
                if error.code() not in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
                    raise
            except RefusedCallError as error:
                if error.reason is not Reason.SHUTTING_DOWN:
                    raise
            await asyncio.sleep(0.02)

    async def submit(self) -> None:
        for number in itertools.count():
            if self.stopping:
                return
            task_id = f"po-{number}"
            await self.call(lambda api, name=task_id: api.submit(name))  # type: ignore[misc]
            self.told["submitted"].append(task_id)
            await asyncio.sleep(0.05)

    async def work(self, worker: str) -> None:
        while not (self.stopping and len(self.told["ended"]) >= len(self.told["submitted"])):
            lease = await self.call(lambda api: api.lease(worker, 0.5, sites=("rakuten",)))
            if lease is not None:
                await self.buy(worker, lease)

    async def buy(self, worker: str, lease: Any) -> None:
        self.told["leased"].append((lease.task_id, lease.lease_token))
        await self.call(lambda api: api.renew(lease, worker))
        await self.call(lambda api: api.report(lease, OrderState.IN_CART, 1, worker))
        await self.call(lambda api: api.permit(lease, worker))
        self.told["permitted"].append((lease.task_id, lease.lease_token))
        await self.call(lambda api: api.report(lease, OrderState.PAID, 2, worker, terminal=True))
        self.told["ended"].append(lease.task_id)
        self._done.set()

    async def go_on(self, orders: int = 8) -> None:
        """Wait until so many orders more are done."""
        wanted = len(self.told["ended"]) + orders
        async with asyncio.timeout(240):
            while len(self.told["ended"]) < wanted:
                self._done.clear()
                await self._done.wait()


@asynccontextmanager
async def serving(load: Load, folder: Path, url: str, tree: Path | None) -> AsyncIterator[GatewayProcess]:
    """A gateway that takes part until it is stopped, gently."""
    await asyncio.to_thread(folder.mkdir)
    settings = {"gateway_db_url": url, "sites": "rakuten"}
    async with gateway_process(folder, tree, **settings) as gateway, connected(gateway.port) as api:
        load.gateways[gateway.port] = api
        yield gateway
        del load.gateways[gateway.port]
        assert await gateway.terminate() == 0, gateway.log


async def migrate(folder: Path, url: str) -> str:
    """Run the command of this version; return what it said."""
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "migrate", cwd=folder, env={"RAKUTEN_GATEWAY_DB_URL": url},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    said = (await process.communicate())[0].decode()
    assert process.returncode == 0, said
    return said


async def test_gateways_of_the_former_version_are_replaced_one_by_one(empty: str, tmp_path: Path) -> None:
    tree = former.unpack(FORMER, tmp_path / "tree")
    load = Load()
    async with AsyncExitStack() as stack:
        formers = [await stack.enter_async_context(AsyncExitStack()) for _ in range(2)]
        for number, former_one in enumerate(formers):
            await former_one.enter_async_context(serving(load, tmp_path / f"former-{number}", empty, tree))
        assert version(empty) == FORMER
        callers = [asyncio.create_task(load.submit())]
        callers += [asyncio.create_task(load.work(f"w{number}")) for number in range(3)]
        await load.go_on()
        assert f"the schema version is {program()}" in " ".join((await migrate(tmp_path, empty)).split())
        assert version(empty) == program()
        await load.go_on()
        for number, former_one in enumerate(formers):
            await stack.enter_async_context(serving(load, tmp_path / f"new-{number}", empty, None))
            await load.go_on()
            await former_one.aclose()
            await load.go_on()
        load.stopping = True
        await asyncio.wait_for(asyncio.gather(*callers), 240)
    assert +contradictions(empty, [load.told]) == Counter()
    rows = postgres.server().execute("SELECT status, count(*) FROM tasks GROUP BY status", postgres.name_of(empty))
    assert rows == [("succeeded", len(load.told["submitted"]))]
    assert len({task_id for task_id, _ in load.told["leased"]}) == len(set(load.told["leased"])), "one was leased twice"


def version(url: str) -> int:
    ((number,),) = postgres.server().execute("SELECT max(number) FROM schema_versions", postgres.name_of(url))
    return int(number)
