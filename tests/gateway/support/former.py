"""A former version of this program, from the tree's own history."""

import io
import subprocess
import tarfile
from functools import cache
from pathlib import Path

_ROOT = Path(__file__).parents[3]
_MIGRATIONS = "gateway/store/postgres/migrations"


@cache
def commit_of_schema(version: int) -> str | None:
    """The last commit whose newest migration was this one; None where the history does not tell."""
    following = _git("log", "--diff-filter=A", "--format=%P", "--", f"{_MIGRATIONS}/{version + 1:04d}_*")
    parents = following.split()
    return parents[0] if parents and _git("ls-tree", "--name-only", parents[0], f"{_MIGRATIONS}/") else None


def unpack(version: int, folder: Path) -> Path:
    """Put the sources of the last version of this schema into a folder."""
    commit = commit_of_schema(version)
    assert commit is not None
    # Where the generated code of the contract was before it had a distribution of its own.
    contract = "generated" if _git("ls-tree", commit, "generated") else "clients/python"
    packed = subprocess.run(
        ["git", "archive", commit, "gateway", "common", contract], cwd=_ROOT, check=True, capture_output=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], cwd=_ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""
