"""A real PostgreSQL server of this test process, and a database of its own for each test.

The server is made and started when the first test asks for it, and ends with the process, also with one that is
killed. It keeps its promises (fsync is on: the gateway refuses a server without); in a temporary file system that costs
nothing.
"""

import atexit
import itertools
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import psycopg

from bench.postgres import account_of_server, as_account
from gateway.store.postgres.connection import parse_url
from gateway.store.postgres.rights import grant
from gateway.store.postgres.schema import migrate
from gateway.store.postgres.service_clock import Machine
from tests.gateway.support.manual_time import ManualTime
from tests.optional_parts import where_is

_MEMORY = "/dev/shm"  # noqa: S108 - folders of their own are made in it
FAST_FOLDER = _MEMORY if os.access(_MEMORY, os.W_OK) else None
"""Where a flush costs nothing; None: there is no such place, and the usual one has to do."""

_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "300",
    "shared_buffers": "16MB",
    "max_wal_size": "256MB",
    "autovacuum": "off",
}


class Server:
    """A cluster in a folder, served on a Unix socket there by a child of this process.

    `make` makes its data in place of initdb, and then it is not started yet; `log_folder`: where its log is, if not
    among its data.
    """

    def __init__(
        self,
        folder: Path,
        make: Callable[["Server"], object] | None = None,
        *,
        log_folder: Path | None = None,
        **settings: str,
    ) -> None:
        self.folder = folder
        self._settings = _SETTINGS | settings
        self._account = account_of_server()
        _clean_up_after_us(folder)
        self.own(folder)
        if make is not None:
            make(self)
            return
        where: list[str | Path] = [] if log_folder is None else ["--waldir", log_folder]
        options = ("--username", "gateway", "--auth", "trust", "--encoding", "UTF8", "--locale", "C", "--no-sync")
        self.run("initdb", "--pgdata", folder / "data", *options, *where)
        self.start()

    def own(self, folder: Path) -> None:
        """Give a folder to the account of the server; everybody may look in."""
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        folder.chmod(0o755)

    def follow(self, block: str, **variables: str | Path) -> None:
        """Run shell lines of a page as the server's superuser does on its machine."""
        path = os.pathsep.join((str(Path(_program("initdb")).resolve().parent), os.environ.get("PATH", os.defpath)))
        values = {name: str(value) for name, value in variables.items()}
        self.run("sh", "-ec", block, PATH=path, PGHOST=str(self.folder), PGUSER="gateway", **values)

    def copy_of(self, origin: "Server") -> None:
        """Make its data from a base backup of another server."""
        self.run("pg_basebackup", "--pgdata", self.folder / "data", "--checkpoint", "fast", "--no-sync",
                 PGHOST=str(origin.folder), PGUSER="gateway")  # fmt: skip

    def run(self, program: str, *arguments: str | Path, **environment: str) -> str:
        """Run one of PostgreSQL's programs as the account of the server; return what it wrote."""
        done = subprocess.run(
            self.command(program, *arguments), stdin=subprocess.DEVNULL,
            check=False, capture_output=True, text=True, cwd=self.folder, env=os.environ | environment,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    def command(self, program: str, *arguments: str | Path) -> list[str | Path]:
        """What runs a program as the account of the server."""
        return [*as_account(self._account), _program(program), *arguments]

    def start(self, **settings: str) -> None:
        """Start it, and wait until it serves."""
        wanted = self._settings | settings
        options = [part for name, value in wanted.items() for part in ("-c", f"{name}={value}")]
        log = (self.folder / "log").open("ab")
        with log:
            self.process = subprocess.Popen(
                self.command("postgres", "-D", self.folder / "data", "-k", self.folder, *options),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder,
            )  # fmt: skip
        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                assert self.process.poll() is None, (self.process.returncode, (self.folder / "log").read_text())
                assert time.monotonic() < until, (self.folder / "log").read_text()
                time.sleep(0.02)
            else:
                return

    def stop(self, *, at_once: bool = False) -> None:
        """End every session and stop; `at_once` is `-m immediate`: as after a crash, the log has to be replayed."""
        if self.process.poll() is None:
            self.process.send_signal(3 if at_once else 2)
        self.process.wait(60)

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.folder / ".s.PGSQL.5432"

    def url(self, database: str) -> str:
        """The address of a database, for the role that owns everything."""
        return f"postgresql://gateway@/{database}?host={self.folder}"

    def execute(self, sql: str, database: str = "postgres", *parameters: Any) -> list[Any]:
        """Run SQL as the superuser, outside of a transaction; return the rows."""
        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(sql.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []


_CLEAN_UP: Final = """
while read -r folder; do set -- "$@" "$folder"; done
for folder; do
    pid=$(head -n 1 "$folder/data/postmaster.pid" 2> /dev/null) || pid=
    # Whoever has got the number of a server that crashed long ago is left alone.
    case $(ps -o args= -p "${pid:-0}" 2> /dev/null) in
        *"$folder/data"*)
            kill -s QUIT "$pid"
            while kill -s 0 "$pid" 2> /dev/null; do sleep 0.1; done ;;
    esac
    rm -rf "$folder"
done
"""


@cache
def _cleaner() -> subprocess.Popen[str]:
    """A shell in a session of its own, which outlives this process however that ends: it waits for the end of a pipe
    that we hold, then stops the servers and removes the folders that it was told of.
    """
    cleaner = subprocess.Popen(
        ["sh", "-c", _CLEAN_UP], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        text=True, bufsize=1, start_new_session=True,
    )  # fmt: skip
    atexit.register(cleaner.communicate)
    return cleaner


def _clean_up_after_us(folder: Path) -> None:
    told = _cleaner().stdin
    assert told is not None
    told.write(f"{folder}\n")


@contextmanager
def own_server() -> Iterator[Server]:
    """A server that a test may stop, crash and start with other settings."""
    with tempfile.TemporaryDirectory(prefix="postgresql-", dir=FAST_FOLDER) as folder:
        made = Server(Path(folder))
        try:
            yield made
        finally:
            made.stop(at_once=True)


@cache
def server() -> Server:
    """The server of this process."""
    folder = Path(tempfile.mkdtemp(prefix="postgresql-", dir=FAST_FOLDER))
    made = Server(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    atexit.register(made.stop, at_once=True)
    with parse_url(made.url("postgres")).connect("template") as connection:
        connection.execute("CREATE DATABASE ready")
        connection.execute(f"CREATE ROLE {_SERVED} LOGIN")
    with parse_url(made.url("ready")).connect("template", statement_timeout="0") as connection:
        migrate(connection)
        grant(connection, _SERVED)
    return made


_SERVED = "served"
_numbers = itertools.count(1)


def new_database(template: str = "ready") -> str:
    """Make a database at the newest schema, or a copy of another; return its URL."""
    name = f"test_{next(_numbers)}"
    server().execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    return server().url(name)


def as_served(url: str) -> str:
    """The URL for the role that owns nothing, as gateways should have it."""
    return url.replace("//gateway@", f"//{_SERVED}@")


def drop_database(url: str) -> None:
    """Drop a database, whoever is still connected."""
    server().execute(f"DROP DATABASE IF EXISTS {name_of(url)} WITH (FORCE)")


def name_of(url: str) -> str:
    """The database that a URL names."""
    return url.partition("@/")[2].partition("?")[0]


@contextmanager
def database() -> Iterator[str]:
    """A database for a while; gives its URL."""
    url = new_database()
    try:
        yield url
    finally:
        drop_database(url)


class BesideRow(dict[str, Any]):
    """A row that is read by name or by number, as SQLite's."""

    def __getitem__(self, key: Any) -> Any:
        return list(self.values())[key] if isinstance(key, int) else super().__getitem__(key)


def beside_row(cursor: Any) -> Callable[[Sequence[Any]], BesideRow]:
    """psycopg's factory of such rows."""
    names = [column.name for column in cursor.description or ()]
    return lambda values: BesideRow(zip(names, values, strict=True))


def as_psycopg(sql: str) -> str:
    """SQL with `?` or `:name` for its parameters, as SQLite takes it, as psycopg does."""
    return re.sub(r"(?<![:\w]):([a-z_]+)", r"%(\1)s", sql.replace("%", "%%")).replace("?", "%s")


class Beside:
    """A connection for SQL of the tests, each statement committed by itself; rows as SQLite's."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True, row_factory=beside_row)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """Run a statement with `?` or `:name` for its parameters."""
        return self._connection.execute(as_psycopg(sql).encode(), parameters or None)

    def close(self) -> None:
        self._connection.close()


def machine(time: ManualTime) -> Machine:
    """The clocks of a test's machine, which are the database's too."""
    clocks = time.machine()
    return Machine(clocks.boot_id, clocks.boot_us, lambda _read: _microseconds(clocks.wall()))


def _microseconds(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _program(name: str) -> str:
    found = where_is(name)
    assert found is not None, name
    return found
