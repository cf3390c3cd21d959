"""A database at the newest schema, made once a process: migrating and flushing it for every test costs the most."""

import tempfile
from functools import cache
from pathlib import Path

from gateway.store.sqlite.engine import open_database


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "gateway.db"
        open_database(path).close()
        return path.read_bytes()


def make_ready(path: Path) -> None:
    """Put an empty database there, unless there is one."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_migrated())
