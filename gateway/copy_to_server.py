"""Moving the content of a SQLite file to an empty PostgreSQL database (docs/postgresql.md#moving-from-a-file).

It needs the driver, so only who is asked to copy imports it.
"""

import functools
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from gateway.clock import SystemTime, load_clock, system_time
from gateway.domain.instant import parse_utc
from gateway.store import clock_anchor
from gateway.store.port import DatabaseUnusableError
from gateway.store.postgres.engine import connected
from gateway.store.postgres.filling import Content
from gateway.store.postgres.moving import Group, take_over
from gateway.store.sqlite import connection as connections
from gateway.store.sqlite.damage import check_log
from gateway.store.sqlite.failures import RESTORE, unusable
from gateway.store.sqlite.file_lock import FileLock
from gateway.store.sqlite.schema import migrations, version_of
from gateway.store.sqlite.transaction import SqliteTransaction

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Copied:
    """Where the content went, and what each table holds; None: an earlier run had done it."""

    shown: str
    tables: Mapping[str, Content] | None


def copy(
    path: Path, url: str, tell: Callable[[str], None] = lambda _line: None, machine: SystemTime | None = None
) -> Copied:
    """Copy everything, compare it, and mark the file as moved, so that no gateway serves it any more.

    Raises DatabaseUnusableError (a gateway has the file open, it is damaged, of another version or moved already; the
    server, its database or what it took is not as it must be), StoreUnavailableError where a later try may succeed.
    """
    path = path.resolve()
    if not path.exists():
        raise DatabaseUnusableError(f"there is no {path}")
    try:
        with closing(FileLock(path, create=False)):
            check_log(path)
            with closing(connections.open_writer(path, allow_moved=True)) as source:
                _examine(source)
                with connected(url, idle_in_transaction_session_timeout="24h") as (address, target):
                    stands = functools.partial(_stands, source, machine or system_time())
                    tables = take_over(source, target, address.shown, stands, tell)
                    target.execute("ANALYZE")
    except (sqlite3.Error, OSError) as error:
        raise unusable(path, error) from error
    return Copied(address.shown, tables)


def _stands(source: sqlite3.Connection, machine: SystemTime, database_us: Callable[[], int]) -> Group:
    """Tell where the service clock stands.

    On the machine that has served the file, and has not booted since, that is exact. Elsewhere what the file says of
    its last moment is handed on: the wall clock judges at the start, as after any boot.
    """
    tx = SqliteTransaction(source)
    anchor, clock = clock_anchor.find(tx), load_clock(tx, machine)
    if anchor is None or clock.continues:
        # In this order what passes in between makes leases shorter, never longer.
        read_us, boot_us = database_us(), machine.boot_us()
        now = clock.now()
        return Group(now.utc, now.elapsed_us, read_us, machine.boot_id, boot_us)
    stood_us = (parse_utc(anchor.utc) - _EPOCH) // timedelta(microseconds=1)
    return Group(anchor.utc, anchor.elapsed_us, stood_us, anchor.boot_id, anchor.boot_us)


def _examine(source: sqlite3.Connection) -> None:
    """Raise DatabaseUnusableError unless the file is of this program's version, and whole."""
    version = version_of(source, allow_moved=True)
    if version != len(migrations()):
        raise DatabaseUnusableError(
            f"the file has schema version {version}, this program {len(migrations())}: run `order-gateway migrate` on "
            "it first"
        )
    fault = str(source.execute("PRAGMA integrity_check(1)").fetchone()[0])
    if fault != "ok" or source.execute("PRAGMA foreign_key_check").fetchone() is not None:
        raise DatabaseUnusableError(f"the file is damaged ({' '.join(fault.split())}); {RESTORE}")
