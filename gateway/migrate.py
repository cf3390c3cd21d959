"""Bringing a database to this program's schema apart from a start, or telling what that would do (docs/upgrade.md)."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gateway.database import require_driver
from gateway.settings import Settings
from gateway.store.migration_files import Migration
from gateway.store.port import DatabaseUnusableError
from gateway.store.sqlite import connection as connections
from gateway.store.sqlite.failures import unusable
from gateway.store.sqlite.file_lock import FileLock
from gateway.store.sqlite.schema import migrate, migration_steps, version_of


@dataclass(frozen=True, slots=True)
class Plan:
    """Where a database stands, and the names of the migrations that it lacks. `rights`: SQL for a role, if asked."""

    shown: str
    version: int
    known: int
    missing: tuple[str, ...]
    rights: str = ""


def plan(settings: Settings, role: str | None = None) -> Plan:
    """Look at the database of the settings; nothing is changed, and gateways may run.

    `role`: whose rights would be set.

    Raises DatabaseUnusableError (none there, another program's, this program is not allowed), StoreUnavailableError.
    """
    if settings.gateway_db_url is not None:
        require_driver()
        from gateway.store.postgres import engine, rights, schema  # noqa: PLC0415

        with engine.connected(settings.gateway_db_url.get_secret_value()) as (address, connection):
            state = schema.state_of(connection)
            schema.require_allowed(state)
            granted = "" if role is None else rights.statements(connection, role)
            return _plan(address.shown, state.version, schema.migrations(), granted)
    _require_server(role)
    path = settings.gateway_db_path.absolute()
    _require_file(path)
    try:
        with closing(connections.open_reader(path)) as connection:
            return _plan(str(path), version_of(connection), migration_steps())
    except (DatabaseUnusableError, sqlite3.Error) as error:
        raise unusable(path, error) from error


def bring_up(
    settings: Settings, tell: Callable[[str], None], *, stop_older: bool = False, role: str | None = None
) -> int:
    """Run what the database lacks, telling of each; return how many migrations ran.

    A server's gateways may run meanwhile; `stop_older`: also where some of them are too old for what comes, which end.
    `role`: who is given what a gateway needs.

    Raises DatabaseUnusableError (as `plan`; a gateway that runs is in the way, no right to change the schema, no such
    role), StoreUnavailableError where a later try may succeed.
    """
    if settings.gateway_db_url is not None:
        require_driver()
        from gateway.store.postgres import engine, rights, schema  # noqa: PLC0415

        with engine.connected(settings.gateway_db_url.get_secret_value()) as (_, connection):
            ran = schema.migrate(connection, tell, stop_older=stop_older)
            if role is not None:
                rights.grant(connection, role)
                tell(f"the role {role} may do what a gateway needs")
            return ran
    _require_server(role)
    path = settings.gateway_db_path.absolute()
    found = plan(settings)
    if found.version == found.known:
        return 0  # so that nobody has to stop a gateway for nothing
    try:
        with closing(FileLock(path, create=False)), closing(connections.open_writer(path)) as connection:
            ran = migrate(connection)
    except (DatabaseUnusableError, sqlite3.Error, OSError) as error:
        raise unusable(path, error) from error
    for step in migration_steps()[len(migration_steps()) - ran :]:
        tell(f"{step.name}: done")
    return ran


def _plan(shown: str, version: int, steps: Sequence[Migration], rights: str = "") -> Plan:
    return Plan(shown, version, steps[-1].number, tuple(step.name for step in steps if step.number > version), rights)


def _require_server(role: str | None) -> None:
    if role is not None:
        raise DatabaseUnusableError("a file knows no roles: --grant-to is for RAKUTEN_GATEWAY_DB_URL")


def _require_file(path: Path) -> None:
    if not path.exists():
        raise DatabaseUnusableError(f"there is no {path} (RAKUTEN_GATEWAY_DB_PATH); `order-gateway serve` makes one")
