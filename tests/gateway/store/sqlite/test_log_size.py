"""The write-ahead log does not keep the size of its longest day: once its content is in the file, it is cut."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from gateway.store.sqlite.connection import LOG_BYTES
from tests.gateway.support.book import Book
from tests.gateway.support.manual_time import ManualTime

INTENT = json.dumps({"pad": "x" * 200_000})


def test_a_log_that_grew_behind_a_reader_is_cut_when_the_reader_has_gone(tmp_path: Path) -> None:
    path = tmp_path / "gateway.db"
    log = tmp_path / "gateway.db-wal"
    with Book(path, ManualTime()) as book:
        book.submit("po-0")
        with closing(sqlite3.connect(path)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM tasks").fetchone()
            for number in range(1, 61):
                book.submit(f"po-{number}", intent_json=INTENT)
            peak = log.stat().st_size
        assert peak > LOG_BYTES + 1_000_000
        for number in range(61, 70):
            book.submit(f"po-{number}")
        assert log.stat().st_size <= LOG_BYTES
        assert len(book.rows("SELECT * FROM tasks")) == 70
