"""A file that is damaged, its write-ahead log too, or held by another program: what is said, and what is served."""

import asyncio
import json
import logging
import os
import struct
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.domain.refusals import Reason
from gateway.store.port import DatabaseUnusableError
from gateway.store.sqlite import damage
from gateway.store.sqlite.engine import open_database
from tests.gateway.support.book import Book
from tests.gateway.support.grpc_api import RefusedCallError
from tests.gateway.support.in_process import running_gateway
from tests.gateway.support.manual_time import ManualTime
from tests.gateway.support.process import refused_start

TASKS = 70
INTENT = json.dumps({"pad": "y" * 3_000})
PAGE, FRAME = 4096, 4120
HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


def log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def filled(folder: Path, *, killed: bool) -> Path:
    """A database with tasks; of a killed gateway, whose last commits are in the log alone."""
    with Book(folder / "source.db", ManualTime()) as book:
        for number in range(TASKS):
            book.submit(f"po-{number}", intent_json=INTENT)
        if not killed:
            book.database.close()
        path = folder / "gateway.db"
        path.write_bytes(book.path.read_bytes())
        if killed:
            log_of(path).write_bytes(log_of(book.path).read_bytes())
    return path


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def header(path: Path) -> None:
    overwrite(path, 0, b"\0" * 100)


def page_size(path: Path) -> None:
    overwrite(path, 16, b"\x13\x37")


def page_of_a_task(path: Path) -> None:
    overwrite(path, path.read_bytes().rindex(b"y" * 1_000) // PAGE * PAGE, b"\xff" * PAGE)


def last_page_gone(path: Path) -> None:
    os.truncate(path, path.stat().st_size - PAGE)


def head_of_the_log(path: Path) -> None:
    overwrite(log_of(path), 4, b"\xff" * 20)


def middle_of_the_log(path: Path) -> None:
    overwrite(log_of(path), log_of(path).stat().st_size // 2, b"\xff" * 64)


def garbage_as_log(path: Path) -> None:
    log_of(path).write_bytes(b"garbage" * 10_000)


OF_THE_FILE = [header, page_size, page_of_a_task, last_page_gone]
OF_THE_LOG = [head_of_the_log, middle_of_the_log, garbage_as_log]


@pytest.mark.parametrize(
    ("harm", "killed"), [*((harm, False) for harm in OF_THE_FILE), *((harm, True) for harm in OF_THE_LOG)]
)
def test_damage_is_refused_at_start_with_what_to_do_and_left_as_it_is(
    tmp_path: Path, harm: Callable[[Path], None], killed: bool
) -> None:
    path = filled(tmp_path, killed=killed)
    harm(path)
    before = {file.name: file.read_bytes() for file in tmp_path.glob("gateway.db*")}
    with pytest.raises(DatabaseUnusableError) as refused:
        open_database(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert str(refused.value).count("\n") == 0
    assert "put a backup back with `order-gateway restore`" in str(refused.value)
    assert before.items() <= {file.name: file.read_bytes() for file in tmp_path.glob("gateway.db*")}.items()


@pytest.mark.parametrize("kept", [0, 10, FRAME // 2])
def test_a_log_whose_last_commit_was_torn_is_taken_with_everything_before_it(tmp_path: Path, kept: int) -> None:
    path = filled(tmp_path, killed=True)
    data = log_of(path).read_bytes()
    commits = [at for at in range(32, len(data), FRAME) if struct.unpack_from(">I", data, at + 4)[0]]
    log_of(path).write_bytes(data[: commits[-1] + kept].ljust(len(data), b"\0"))
    with Book(path, ManualTime()) as book:
        assert len(book.rows("SELECT * FROM tasks")) == TASKS - 1


def test_a_log_that_never_got_its_head_is_taken_as_empty(tmp_path: Path) -> None:
    path = filled(tmp_path, killed=False)
    log_of(path).write_bytes(bytes(FRAME))
    open_database(path).close()


def test_a_large_file_is_not_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "CHECKED_BYTES", PAGE)
    path = filled(tmp_path, killed=False)
    page_of_a_task(path)
    open_database(path).close()


async def test_damage_met_while_running_is_an_error_and_never_a_wrong_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = filled(tmp_path, killed=False)
    async with running_gateway(tmp_path) as gateway:
        pages = path.stat().st_size // PAGE
        for page in range(pages // 2, pages, 3):
            overwrite(path, page * PAGE, b"\xff" * PAGE)
        refusals = []
        with caplog.at_level(logging.ERROR):
            for number in range(TASKS):
                try:
                    assert (await gateway.api.task(f"po-{number}")).intent_json == INTENT
                except RefusedCallError as error:
                    refusals.append((error.status, error.reason, error.detail.message))
    assert 0 < len(refusals) < TASKS
    words = "the database is damaged and has to be restored; send it again after that"
    assert set(refusals) == {("UNAVAILABLE", Reason.STORE_UNAVAILABLE, words)}
    (said,) = {record.getMessage() for record in caplog.records if record.levelno == logging.ERROR}
    assert said.startswith("the database is damaged and cannot be read: database disk image is malformed; put a backup")


async def test_nothing_is_left_beside_the_file_of_a_gateway_that_was_stopped(tmp_path: Path) -> None:
    async with running_gateway(tmp_path) as gateway:
        await gateway.api.submit()
        await gateway.api.task()
        assert log_of(gateway.path).stat().st_size
    assert not log_of(gateway.path).exists()


@asynccontextmanager
async def held(path: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    """Another program holds the write lock until it gets a line."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", HOLD, path, stdin=pipe, stdout=pipe)
    assert process.stdout is not None
    assert await process.stdout.readline() == b"held\n"
    try:
        yield process
    finally:
        if process.returncode is None:
            await process.communicate(b"\n")


async def test_a_file_that_another_program_locks_is_waited_for_then_refused_and_then_served_again(
    tmp_path: Path,
) -> None:
    async with running_gateway(tmp_path) as gateway:
        async with held(gateway.path) as other:
            waiting = asyncio.create_task(gateway.api.submit("po-waits"))
            assert not (await gateway.api.list()).tasks, "readers are not held up"
            await other.communicate(b"\n")
            assert (await waiting).created
        async with held(gateway.path):
            with pytest.raises(RefusedCallError) as refused:
                await gateway.api.submit("po-refused")
            assert (refused.value.status, refused.value.reason) == ("UNAVAILABLE", Reason.STORE_UNAVAILABLE)
        assert (await gateway.api.submit("po-refused")).created, "nothing of the refused one was stored"


async def test_a_start_while_the_file_is_locked_fails_in_one_line_and_may_be_tried_again(tmp_path: Path) -> None:
    path = filled(tmp_path, killed=False)
    async with held(path):
        code, said = await refused_start(tmp_path)
    assert code == 1, "not 3, after which systemd would not start it again"
    assert said.splitlines()[-1] == (
        "order-gateway: the database cannot take writes now: database is locked; "
        "the gateway can be started again once that is over"
    )
    assert "Traceback" not in said
