"""What tests of backup and restore share."""

from pathlib import Path

from gateway.store.sqlite.backup import back_up
from tests.gateway.support.book import Book


def never() -> bool:
    return False


def save(book: Book, folder: Path, name: str = "b.db") -> Path:
    back_up(book.path, folder, name, never)
    return folder / name
