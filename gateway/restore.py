"""Putting a backup in the place of the database, with the gateway stopped (docs/specification.md#restore)."""

import os
import secrets
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.clock import SystemTime, load_clock, system_time
from gateway.domain.models import Actor
from gateway.domain.operations import BackupFacts
from gateway.operations.restore import mark_restored
from gateway.store.port import DatabaseUnusableError
from gateway.store.sqlite import connection as connections
from gateway.store.sqlite import moved
from gateway.store.sqlite.backup import Progress, inspect, place
from gateway.store.sqlite.file_lock import FileLock
from gateway.store.sqlite.schema import APPLICATION_ID, migrate
from gateway.store.sqlite.transaction import SqliteTransaction

_ACTOR: Final = Actor("restore")


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did: what the backup held, how many tasks were open, where the old database is (None: none)."""

    facts: BackupFacts
    open_tasks: int
    set_aside: Path | None


def restore(
    backup: Path, target: Path, progress: Progress = lambda _left, _total: None, machine: SystemTime | None = None
) -> Restored:
    """Verify `backup` and put it in the place of `target`; the old database is kept beside it.

    Raises DatabaseUnusableError (the gateway runs, no room, the backup is damaged or newer than this program), OSError.
    """
    machine = machine or system_time()
    # The database's log lies beside the file itself, not beside a symbolic link to it.
    target = target.resolve()
    owner = (target if target.exists() else target.parent).stat() if target.parent.exists() else None
    with closing(_locked(target)) as held:
        _give(held.beside, owner)
        facts = inspect(backup)
        opened: list[int] = []

        def prepare(copy: Path) -> None:
            opened.append(_prepare(copy, facts, machine))
            _give(copy, owner)

        aside = target.with_name(f"{target.name}.before-restore-{machine.wall():%Y%m%dT%H%M%S%f}Z")
        try:
            existed = place(backup, target, aside, prepare, progress)
        except sqlite3.Error as error:
            raise DatabaseUnusableError(f"{target}: {error}; nothing was changed") from error
    return Restored(facts, opened[0], aside if existed else None)


def _locked(target: Path) -> FileLock:
    try:
        return FileLock(target, create=False)
    except DatabaseUnusableError as error:
        raise DatabaseUnusableError(f"{target}: {error}") from error


def _give(path: int | Path, owner: os.stat_result | None) -> None:
    """Leave what root makes to whom the database belongs: the service could not open a file of root's."""
    if owner is not None and os.geteuid() == 0:
        os.chown(path, owner.st_uid, owner.st_gid)


def _prepare(copy: Path, facts: BackupFacts, machine: SystemTime) -> int:
    with closing(connections.open_writer(copy, allow_moved=True)) as writing:
        if moved.move_of(writing) is not None:
            moved.unmark(writing, APPLICATION_ID)
        migrate(writing)
        tx = SqliteTransaction(writing)
        clock = load_clock(tx, machine)
        writing.execute("BEGIN IMMEDIATE")
        now = clock.now()
        open_tasks = mark_restored(tx, now, facts.file_name, _ACTOR, _new_token)
        clock.save(tx, now)
        writing.execute("COMMIT")
    return open_tasks


def _new_token() -> str:
    return secrets.token_urlsafe(32)
