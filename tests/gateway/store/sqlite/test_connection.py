"""What SQLite must be told, and what it would otherwise let pass."""

import sqlite3

import pytest

from tests.gateway.support.book import Book


def test_every_commit_is_flushed_and_foreign_keys_are_enforced(book: Book) -> None:
    wanted = {"synchronous": 2, "foreign_keys": 1, "journal_mode": "wal"}
    assert {name: book.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted} == wanted


def test_a_replacing_insert_does_not_rewrite_the_history_or_a_task(book: Book) -> None:
    book.submit()
    book.connection.execute("PRAGMA recursive_triggers = ON")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        book.connection.execute("INSERT OR REPLACE INTO events SELECT * FROM events")
    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        book.connection.execute("INSERT OR REPLACE INTO tasks SELECT * FROM tasks")
