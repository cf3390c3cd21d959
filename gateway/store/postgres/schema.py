"""The schema: numbered migrations as SQLite's, each in one transaction, under a lock that all gateways share.

A number has the same tables and columns on both engines. What came before the first file is in that file.

Gateways of the former version go on while a migration runs (docs/adr/0021-expand-then-contract.md): it waits for the
writer's lock as a group of operations does, and for a table no longer than LOCK_SECONDS at a time, since whoever reads
or writes that table waits behind it.
"""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final

import psycopg

from gateway.store.migration_files import Migration, read
from gateway.store.port import DatabaseUnusableError, StoreUnavailableError
from gateway.store.postgres.statements import statements

LOCK_SECONDS: Final = 2.0
"""How long a migration waits for its locks before it lets the others pass and tries again."""

AGAIN_SECONDS: Final = 1.0
TRIES: Final = 20

LIVING_SECONDS: Final = 10
"""A gateway that has committed a group within this time lives; each commits one a second."""

CUT_OFF_SECONDS: Final = 20
"""Who migrates and says nothing for so long between two statements has gone."""

_MIGRATION_LOCK: Final = 0x4F474D47
"""Apart from the writer's lock ("OGMG"), so that a second one who migrates waits here and not among the groups."""

_OLDEST_UNTOLD: Final = 11
"""The oldest program that goes on with the versions before the table that tells it."""

_VERSIONS: Final = b"""
CREATE TABLE IF NOT EXISTS schema_versions (
    number bigint PRIMARY KEY,
    reached_at timestamptz NOT NULL DEFAULT now()
)
"""

_LIVING: Final = b"""
SELECT DISTINCT gateways.* FROM gateways JOIN store_groups USING (gateway_id)
WHERE store_groups.database_us > extract(epoch FROM clock_timestamp()) * 1000000 - %s
    AND store_groups.number > (SELECT max(number) - 10000 FROM store_groups)
ORDER BY gateways.gateway_id
"""

_log = logging.getLogger(__name__)

Tell = Callable[[str], None]
"""Gets a line about what goes on."""


@cache
def migrations() -> Sequence[Migration]:
    """Return the migrations in order. Raises ValueError for a gap."""
    return read(files(__package__).joinpath("migrations"))


def program() -> int:
    """Return what this program is known by: the newest schema version that it knows."""
    return migrations()[-1].number


@dataclass(frozen=True, slots=True)
class State:
    """Where a database stands: its version (0: empty), and the oldest program that may use it."""

    version: int
    oldest_program: int


def state_of(connection: psycopg.Connection) -> State:
    """Look where the database stands. Raises DatabaseUnusableError if it is another program's, psycopg.Error."""
    tables = _one(
        connection,
        "SELECT count(*), count(*) FILTER (WHERE tablename = 'schema_versions'), "
        "count(*) FILTER (WHERE tablename = 'schema_compatibility') FROM pg_tables WHERE schemaname = current_schema()",
    )
    in_all, versions, compatibility = tables
    if not versions:
        if in_all:
            raise DatabaseUnusableError("it holds the tables of another program; name a database of its own")
        return State(0, _OLDEST_UNTOLD)
    (version,) = _one(connection, "SELECT coalesce(max(number), 0) FROM schema_versions")
    oldest = _one(connection, "SELECT oldest_program FROM schema_compatibility")[0] if compatibility else _OLDEST_UNTOLD
    return State(version, oldest)


def require_allowed(state: State) -> None:
    """Raise DatabaseUnusableError unless this program may use a database that stands there, or bring it on."""
    if state.version and state.oldest_program > program():
        raise DatabaseUnusableError(too_old(state.oldest_program))


def too_old(oldest_program: int) -> str:
    """Say that the schema does not allow this program any more."""
    return (
        f"its schema allows programs that know version {oldest_program} or newer, this one knows versions up to "
        f"{program()}; use the newer program"
    )


def migrate(
    connection: psycopg.Connection,
    tell: Tell = _log.info,
    *,
    stop_older: bool = False,
    steps: Sequence[Migration] | None = None,
) -> int:
    """Bring the database to the newest version and return how many migrations ran. Started twice at once, it runs once.

    A migration that a running gateway could not go on with is undone and refused, unless `stop_older`.

    Raises DatabaseUnusableError (another program's, a version that does not allow this program, a gateway that runs
    could not go on, no right to change the schema), StoreUnavailableError where a table was in use all the time,
    psycopg.Error.
    """
    steps = migrations() if steps is None else steps
    found = state_of(connection)
    require_allowed(found)
    if found.version >= steps[-1].number:
        return 0
    try:
        with migration_lock(connection, tell):
            found = state_of(connection)
            require_allowed(found)
            missing = [step for step in steps if step.number > found.version]
            for step in missing:
                _run_patiently(connection, step, found.version, tell, stop_older=stop_older)
    # A role that may not even see the schema is told that there is none.
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.InvalidSchemaName) as error:
        raise DatabaseUnusableError(
            f"it has schema version {found.version}, this program needs {steps[-1].number}, and this role may not "
            f"change the schema ({error.diag.message_primary}): run `order-gateway migrate` as the role that owns it"
        ) from error
    return len(missing)


@contextmanager
def migration_lock(connection: psycopg.Connection, tell: Tell) -> Iterator[None]:
    """Hold the lock of those who migrate; another one is waited for until it is done.

    It belongs to the session, and the server learns by TCP alone, by default after two hours, that nobody is there any
    more: who is cut off must not keep all others waiting for so long.
    """
    connection.execute(f"SET idle_session_timeout = '{CUT_OFF_SECONDS}s'".encode())
    (had,) = _one(connection, f"SELECT pg_try_advisory_lock({_MIGRATION_LOCK})")
    if not had:
        tell("somebody else is migrating this database; waiting for the end of it")
        with connection.transaction():
            connection.execute("SET LOCAL lock_timeout = 0")
            connection.execute("SELECT pg_advisory_lock(%s)", (_MIGRATION_LOCK,))
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute("SELECT pg_advisory_unlock(%s)", (_MIGRATION_LOCK,))
            connection.execute("RESET idle_session_timeout")


def _run_patiently(
    connection: psycopg.Connection, step: Migration, found: int, tell: Tell, *, stop_older: bool
) -> None:
    begun = time.monotonic()
    for tries_left in reversed(range(TRIES)):
        try:
            _run(connection, step, found, stop_older=stop_older)
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            if not tries_left:
                raise StoreUnavailableError(
                    f"{step.name}: a table was in use all the time, by a dump or a long transaction; it was undone"
                ) from error
            tell(f"{step.name}: a table is in use; others pass, and it is tried again ({tries_left} times more)")
            time.sleep(AGAIN_SECONDS)
        else:
            tell(f"{step.name}: done in {time.monotonic() - begun:.1f} s")
            return


def _run(connection: psycopg.Connection, step: Migration, found: int, *, stop_older: bool) -> None:
    with connection.transaction():
        connection.execute(f"SET LOCAL lock_timeout = {int(LOCK_SECONDS * 1000)}".encode())
        if not found and step.number == migrations()[0].number:
            connection.execute(_VERSIONS)
        # No group is under way: none meets half of it, and no two wait for each other's tables.
        connection.execute(statements()["writer_lock"].sql)
        connection.execute(step.sql.encode())
        connection.execute("INSERT INTO schema_versions (number) VALUES (%s)", (step.number,))
        if found:
            _spare_who_runs(connection, step, found, stop_older=stop_older)


def _spare_who_runs(connection: psycopg.Connection, step: Migration, found: int, *, stop_older: bool) -> None:
    """Raise DatabaseUnusableError if a gateway lives that the schema does not allow any more."""
    oldest = state_of(connection).oldest_program
    cursor = connection.execute(_LIVING, (LIVING_SECONDS * 1_000_000,))
    names = [column.name for column in cursor.description or ()]
    for values in cursor.fetchall():
        living = dict(zip(names, values, strict=True))
        # Those of before version 14 never look, so nothing but a person can stop them.
        looks, known = "program" in living and living["program"] > _OLDEST_UNTOLD, living.get("program", found)
        if known < oldest and not (stop_older and looks):
            by = "or let --stop-older end it" if looks else "it does not stop by itself"
            raise DatabaseUnusableError(
                f"{step.name} is not for the gateway {living['gateway_id']}, which runs on this database since "
                f"{living['started_at']} and knows versions up to {known}: stop it first, {by}; nothing was changed"
            )


def _one(connection: psycopg.Connection, sql: str) -> tuple[int, ...]:
    row = connection.execute(sql.encode()).fetchone()
    if row is None:
        raise LookupError(sql)
    return tuple(row)
