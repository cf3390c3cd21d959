"""Where the clients are built: a copy of their folders beside the contract, outside of the clone, which stays warm.

A fresh clone therefore builds as quickly as an old one. Files are copied only where their content differs, so that a
tool that goes by the time of a file builds anew only what concerns it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
MADE = {"node_modules", "dist", "gen", "target", "build", "bin", "Cargo.lock", "__pycache__"}
"""What building leaves in a folder."""


def default_cache() -> Path:
    """The folder that a user's programs may fill and anybody may empty."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "order-gateway-clients"


@contextmanager
def workshop(contract: Path) -> Iterator[Path]:
    """Yields the folder that holds `clients/` and `proto/`; nobody else has it meanwhile."""
    folder = default_cache()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mirror(contract, folder / "proto")
        yield folder


def mirror(source: Path, copy: Path) -> None:
    """Makes the copy the same as its source, but for what building made there."""
    wanted = set(_files(source))
    for name in set(_files(copy)) - wanted:
        (copy / name).unlink()
    for name in wanted:
        content, there = (source / name).read_bytes(), copy / name
        if not there.is_file() or there.read_bytes() != content:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(content)


def _files(folder: Path) -> Iterator[Path]:
    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in MADE]
        yield from (Path(path, name).relative_to(folder) for name in files if name not in MADE)
