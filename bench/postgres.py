"""A PostgreSQL server of a benchmark's own, on the disk that temporary files lie on, with the settings it comes with.

So every commit is flushed, as it is where a gateway keeps its book; the gateway refuses a server that does not.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg import sql

from bench.processes import START_SECONDS
from bench.result import Skipped
from demo.programs import Program, started

BESIDE_THE_PATH: Final = tuple(map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)))
"""Where Debian keeps the server's programs, the newest first: on nobody's PATH."""


@dataclass(frozen=True, slots=True)
class Server:
    """A running server, reached over a Unix socket in its folder."""

    folder: Path
    program: Program

    def url(self, database: str) -> str:
        """The address of a database, for the role that owns everything."""
        return f"postgresql://bench@/{database}?host={self.folder}"

    def new_database(self, name: str) -> str:
        """Makes an empty database; gives its address."""
        with self.connect("postgres") as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(name)

    def connect(self, database: str) -> psycopg.Connection[Any]:
        """A connection, each statement committed by itself. Raises OperationalError if the server does not serve."""
        return psycopg.connect(self.url(database), autocommit=True, connect_timeout=5)

    def serves(self) -> bool:
        """True if it takes connections."""
        try:
            self.connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True


@contextmanager
def server(logs: Path) -> Iterator[Server]:
    """A new server; what it says goes to `postgresql.log` in `logs`. Raises Skipped where one cannot be had."""
    account = account_of_server()
    initdb, postgres = ([*as_account(account), _program(name)] for name in ("initdb", "postgres"))
    if account:
        _program("setpriv")
    logs.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="order-gateway-bench-postgresql-") as name:  # a socket's path must be short
        folder, data = Path(name), f"{name}/data"
        folder.chmod(0o755)
        if account:
            os.chown(folder, account.pw_uid, account.pw_gid)
        options = ("--username=bench", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        made = subprocess.run(
            [*initdb, f"--pgdata={data}", *options],
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if made.returncode != 0:
            raise RuntimeError(f"initdb failed:\n{made.stderr[-2000:]}")
        command = [*postgres, "-D", data, "-k", name, "-c", "listen_addresses="]
        with started("PostgreSQL", command, {}, folder=folder, log=logs / "postgresql.log") as program:
            running = Server(folder, program)
            program.wait_until(running.serves, seconds=START_SECONDS)
            yield running


def account_of_server() -> pwd.struct_passwd | None:
    """As whom the server's programs are run: None is whoever runs this; PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


def as_account(account: pwd.struct_passwd | None) -> list[str]:
    """What goes before a command that is to run as this account.

    Not by what subprocess has for it: with another user it copies this process in place of borrowing it (vfork), and in
    the copy gRPC's handlers of a fork run, which crash where a server or channel is at work.
    """
    if account is None:
        return []
    return ["setpriv", f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]


def _program(name: str) -> str:
    found = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *BESIDE_THE_PATH)))
    if found is None:
        raise Skipped(f"there is no {name} on this machine")
    return found
