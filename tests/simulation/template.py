"""The databases with which runs begin."""

import tempfile
from functools import cache
from pathlib import Path

from gateway.store.sqlite.engine import open_database

MEMORY = Path("/dev/shm")  # noqa: S108 -- a folder of the run's own is made in it


@cache
def migrated() -> Path:
    """A migrated database, copied for each run."""
    path = Path(tempfile.mkdtemp(prefix="simulation-template-")) / "gateway.db"
    database = open_database(path)
    database.writing.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return path
