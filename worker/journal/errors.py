"""That the journal cannot be used, and why, in one line for a person."""

import sqlite3
from pathlib import Path
from typing import Final

from common.file_access import next_step

_DAMAGED: Final = (
    "it is damaged, or another kind of file. A journal is the authority on what was ordered: keep it, look at every "
    "open task on the site, and only then start with a new one (docs/runbook.md)"
)
_PRIMARY_CODE: Final = 0xFF


class JournalError(Exception):
    """The journal cannot be used. The message is one line for a person."""


def unusable(path: Path, error: OSError | sqlite3.Error | JournalError) -> JournalError:
    """Return what to tell of a journal that could not be opened, read or written: why, whose it is, what to do."""
    if isinstance(error, JournalError):
        return error
    if isinstance(error, OSError):
        return JournalError(f"{path} cannot be used as a journal: {error.strerror}{next_step(path)}")
    code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return damaged(path)
    return JournalError(f"{path} cannot be used as a journal: {error}{next_step(path)}")


def damaged(path: Path) -> JournalError:
    """Return what to tell of a journal that is damaged."""
    return JournalError(f"{path} cannot be used as a journal: {_DAMAGED}")
