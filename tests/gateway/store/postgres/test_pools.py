"""Gateways behind PgBouncer: in session mode they work, in the others they do not start."""

import asyncio
import contextlib
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from gateway.store.port import DatabaseUnusableError
from tests.gateway.support import postgres
from tests.gateway.support.in_process import running_gateway

pytestmark = pytest.mark.needs("postgresql", "pgbouncer")

PORT = 6432

CONFIGURATION = """
[databases]
* = host={server}
[pgbouncer]
listen_addr =
listen_port = {port}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
pool_mode = {mode}
"""


@contextmanager
def pool(mode: str, url: str) -> Iterator[str]:
    """A pool before the test server; gives the URL of the same database through it."""
    server = postgres.server()
    with tempfile.TemporaryDirectory(prefix="pgbouncer-", dir=postgres.FAST_FOLDER) as name:
        folder = Path(name)
        (folder / "users").write_text('"gateway" ""\n')
        (folder / "ini").write_text(CONFIGURATION.format(server=server.folder, folder=folder, mode=mode, port=PORT))
        server.own(folder)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                server.command("pgbouncer", folder / "ini"),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder,
            )  # fmt: skip
        try:
            through = f"postgresql://gateway@/{postgres.name_of(url)}?host={folder}&port={PORT}"
            until_it_serves(process, through, folder / "log")
            yield through
        finally:
            process.terminate()
            process.wait(60)


def until_it_serves(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    until = time.monotonic() + 60
    while True:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=5).close()
            return
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.02)


async def test_behind_a_pool_in_session_mode_two_gateways_work_together(url: str, tmp_path: Path) -> None:
    with pool("session", url) as through:
        async with (
            running_gateway(tmp_path / "a", gateway_db_url=through) as a,
            running_gateway(tmp_path / "b", gateway_db_url=through) as b,
        ):
            waiting = asyncio.create_task(b.api.lease(wait=30))
            await a.api.submit("po-1")
            lease = await waiting
            assert lease is not None
            await a.api.renew(lease)


@pytest.mark.parametrize("mode", ["transaction", "statement"])
async def test_behind_a_pool_in_another_mode_a_gateway_does_not_start(
    url: str, tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.postgres.server.HEARD_WITHIN_SECONDS", 0.5)
    with pool(mode, url) as through, pytest.raises(DatabaseUnusableError, match="in session mode") as told:
        async with running_gateway(tmp_path, gateway_db_url=through):
            pass
    assert "a session does not hear its notifications" in str(told.value)
    assert "\n" not in str(told.value)
