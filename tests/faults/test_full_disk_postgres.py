"""A full disk under PostgreSQL, for real: its data on a small file system, and then its log on one."""

import asyncio
import contextlib
import json
import secrets
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import pytest

from gateway.domain.refusals import Reason
from tests.faults.disks import SmallDisk, small_disk
from tests.faults.program import until
from tests.gateway.support import postgres
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError, connected
from tests.gateway.support.process import GatewayProcess, gateway_process

pytestmark = [pytest.mark.needs("postgresql", "mount"), pytest.mark.timeout(300)]

CALLERS = 8


@dataclass
class Callers:
    """Upstreams whose orders take room, and what they were told."""

    api: GrpcApi
    acknowledged: set[str] = field(default_factory=set)
    refused: dict[str, tuple[str, Reason]] = field(default_factory=dict)
    enough: bool = False

    async def submit(self, task_id: str) -> None:
        try:
            await self.api.submit(task_id, json.dumps({"cannot be packed": secrets.token_hex(20_000)}))
        except RefusedCallError as error:
            self.refused[task_id] = (error.status, error.reason)
        else:
            self.acknowledged.add(task_id)
            self.refused.pop(task_id, None)

    async def until_refused(self) -> None:
        await self._until(lambda: bool(self.refused))

    async def until_enough(self) -> None:
        await self._until(lambda: self.enough)

    async def _until(self, over: Callable[[], bool]) -> None:
        number = 0
        while not over():
            number += 1
            await asyncio.gather(*(self.submit(f"po-{number}-{caller}") for caller in range(CALLERS)))

    async def again(self) -> None:
        """What was refused is sent again until it is taken, as the status asks for."""
        while self.refused:
            await asyncio.gather(*map(self.submit, self.refused))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with room, in which the account of the server may make others."""
    with tempfile.TemporaryDirectory(prefix="postgresql-", dir=postgres.FAST_FOLDER) as made:
        Path(made).chmod(0o777)
        yield Path(made)


@pytest.fixture
def disk(folder: Path) -> Iterator[SmallDisk]:
    with small_disk(folder / "disk") as made:
        made.folder.chmod(0o777)
        yield made


@pytest.fixture
def data_on_it(folder: Path, disk: SmallDisk) -> Iterator[postgres.Server]:
    """A server whose data has little room, and whose log has enough."""
    server = postgres.Server(disk.folder, log_folder=folder / "log")
    yield server
    server.stop(at_once=True)


@pytest.fixture
def log_on_it(folder: Path, disk: SmallDisk) -> Iterator[postgres.Server]:
    """A server whose log has little room, and whose data has enough."""
    (folder / "data").mkdir()
    server = postgres.Server(folder / "data", log_folder=disk.folder / "log")
    yield server
    server.stop(at_once=True)


def filed(server: postgres.Server) -> set[str]:
    return {task_id for (task_id,) in server.execute("SELECT task_id FROM tasks")}


def serves_again(server: postgres.Server) -> None:
    """Wait until a server that crashed has recovered by itself, or has given up and been started."""
    while server.process.poll() is None:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(server.url("postgres"), connect_timeout=5).close()
            return
        time.sleep(0.02)
    server.start()


def told_of(gateway: GatewayProcess, words: str) -> int:
    return sum(words in line for line in gateway.log.splitlines())


async def test_without_room_for_its_data_nothing_is_stored_and_it_goes_on_once_there_is_room(
    tmp_path: Path, data_on_it: postgres.Server, disk: SmallDisk
) -> None:
    async with (
        gateway_process(tmp_path, gateway_db_url=data_on_it.url("postgres")) as gateway,
        connected(gateway.port) as api,
    ):
        callers = Callers(api)
        await callers.submit("po-before")
        disk.fill(gateway.process.pid, leave=400_000)
        await callers.until_refused()
        assert set(callers.refused.values()) == {("UNAVAILABLE", Reason.STORE_UNAVAILABLE)}
        assert {task.task_id for task in (await api.list(page_size=200)).tasks} == callers.acknowledged
        assert filed(data_on_it) == callers.acknowledged
        # What is small still fits into pages that are there, until these are full too.
        while not (problems := (await api.health()).problems):
            await callers.submit("po-refused")
        assert "the database takes no writes" in problems[0].message
        assert told_of(gateway, "store cannot write: the database cannot take writes now: could not extend file")
        await until(lambda: told_of(gateway, "problem=store_not_writable") > 0)
        assert told_of(gateway, "Traceback") == 0

        disk.make_room(gateway.process.pid)
        await callers.again()
        while (await api.health()).problems:
            pass
        gateway.kill()
        await gateway.wait()
    assert filed(data_on_it) == callers.acknowledged


@pytest.mark.extended
async def test_a_checkpoint_without_room_crashes_the_server_and_nothing_acknowledged_is_lost(
    tmp_path: Path, data_on_it: postgres.Server, disk: SmallDisk
) -> None:
    """It writes a small file of its own, and a server that cannot do that gives up."""
    async with (
        gateway_process(tmp_path, gateway_db_url=data_on_it.url("postgres")) as gateway,
        connected(gateway.port) as api,
    ):
        callers = Callers(api)
        await asyncio.gather(*(callers.submit(f"po-{number}") for number in range(20)))
        disk.fill(gateway.process.pid)
        with pytest.raises(psycopg.Error):
            data_on_it.execute("CHECKPOINT")
        disk.make_room(gateway.process.pid)
        await asyncio.to_thread(serves_again, data_on_it)
        await callers.submit("po-after")
        await callers.again()
        assert "po-after" in callers.acknowledged
    assert filed(data_on_it) == callers.acknowledged


@pytest.mark.extended
async def test_without_room_for_its_log_the_server_crashes_and_everybody_learns_what_became_of_their_order(
    tmp_path: Path, log_on_it: postgres.Server, disk: SmallDisk
) -> None:
    async with (
        gateway_process(tmp_path, gateway_db_url=log_on_it.url("postgres")) as gateway,
        connected(gateway.port) as api,
    ):
        callers = Callers(api)
        await callers.submit("po-before")
        disk.fill(gateway.process.pid)
        filing = asyncio.create_task(callers.until_enough())
        await until(lambda: "PANIC" in (log_on_it.folder / "log").read_text())
        disk.make_room(gateway.process.pid)
        await asyncio.to_thread(serves_again, log_on_it)
        callers.enough = True
        await filing
        assert told_of(gateway, "Traceback") == 0
        assert filed(log_on_it) == callers.acknowledged, "what it was not told of was not stored, or it was told"
        await callers.again()
        while (await api.health()).problems:
            pass
        gateway.kill()
        await gateway.wait()
    assert filed(log_on_it) == callers.acknowledged
