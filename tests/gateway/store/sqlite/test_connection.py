"""What SQLite must be told, and what it would otherwise let pass."""

import os
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final

import pytest

from gateway.store.sqlite.engine import open_database
from tests.gateway.support.book import Book

FILES: Final = Path("/proc/self/fd")


def test_every_commit_is_flushed_and_foreign_keys_are_enforced(book: Book) -> None:
    wanted = {"synchronous": 2, "foreign_keys": 1, "journal_mode": "wal"}
    assert {name: book.connection.execute(f"PRAGMA {name}").fetchone()[0] for name in wanted} == wanted


@pytest.mark.skipif(not FILES.is_dir(), reason="shows which files a process has open only where there is /proc")
def test_what_takes_a_statement_back_is_written_to_no_file(book: Book) -> None:
    with closing(open_database(book.path.with_name("served.db"))) as database:
        writing = database.writing
        writing.execute("BEGIN IMMEDIATE")
        # So many that some statements move more than the 64 KiB that SQLite keeps in memory anyway.
        for number in range(3000):
            writing.execute(
                "INSERT INTO tasks (task_id, site, intent_json, status, created_at, updated_at)"
                " VALUES (?, 'rakuten', ?, 'queued', '', '') ON CONFLICT (task_id) DO NOTHING RETURNING row",
                (sha256(str(number).encode()).hexdigest(), "{}"),
            ).fetchone()
        opened = [os.path.realpath(file) for file in FILES.iterdir()]
        assert any("served.db" in name for name in opened)
        assert [name for name in opened if "etilqs" in name] == []


def test_a_replacing_insert_does_not_rewrite_the_history_or_a_task(book: Book) -> None:
    book.submit()
    book.connection.execute("PRAGMA recursive_triggers = ON")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        book.connection.execute("INSERT OR REPLACE INTO events SELECT * FROM events")
    with pytest.raises(sqlite3.IntegrityError, match="never deleted"):
        book.connection.execute("INSERT OR REPLACE INTO tasks SELECT * FROM tasks")
