"""The journal's connection in a simulation: aiosqlite's interface, run inline on the real file."""

import asyncio
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.simulation.loop import Process
from tests.simulation.store import Disk, failed_commit, full_disk

BUSY_SECONDS = 10.0
READING = ("SELECT", "PRAGMA", "ROLLBA")


class InlineCursor:
    """aiosqlite's cursor, as far as the journal uses it."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        self._cursor = cursor

    async def fetchone(self) -> Any:
        return self._cursor.fetchone()

    async def fetchall(self) -> Iterable[Any]:
        return self._cursor.fetchall()

    @property
    def lastrowid(self) -> int | None:
        return self._cursor.lastrowid

    @property
    def rowcount(self) -> int:
        return self._cursor.rowcount


class InlineConnection:
    """Power can fail before a transaction, before its COMMIT and after it; a full disk refuses what writes."""

    def __init__(self, path: Path, process: Process, disk: Disk) -> None:
        self.raw = sqlite3.connect(path, isolation_level=None, timeout=0)
        self.raw.row_factory = sqlite3.Row
        self._process = process
        self._disk = disk
        process.on_death.append(self._cut_off)
        process.loop.at_the_end.append(self.raw.close)

    def _cut_off(self) -> None:
        if self.raw.in_transaction:
            self.raw.rollback()

    async def execute(self, sql: str, parameters: Iterable[Any] | None = None) -> InlineCursor:
        if not self._process.alive:
            await self._process.loop.create_future()
        if sql.startswith("PRAGMA busy_timeout"):  # SQLite would wait in real time
            return InlineCursor(self.raw.execute("PRAGMA user_version"))
        if sql == "BEGIN IMMEDIATE":
            await self._process.point("journal: before BEGIN")
            return InlineCursor(await self._begin())
        if sql == "COMMIT":
            await self._process.point("journal: before COMMIT")
            await asyncio.sleep(self._disk.latency())
            reached = self._disk.commit_fails()
            cursor = self.raw.execute("ROLLBACK" if reached is False else sql)
            if reached is not None:
                raise failed_commit()
            await self._process.point("journal: after COMMIT")
            return InlineCursor(cursor)
        if self._disk.full and not sql.startswith(READING):
            raise full_disk()
        try:
            return InlineCursor(self.raw.execute(sql, tuple(parameters or ())))
        except sqlite3.IntegrityError:
            if sql.startswith("INSERT INTO clicks"):
                self._disk.count("clicks kept back by their record")
            raise

    async def _begin(self) -> sqlite3.Cursor:
        waited = 0.0
        while True:
            try:
                return self.raw.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                if waited >= BUSY_SECONDS:
                    raise
            waited += 0.05
            await asyncio.sleep(0.05)

    async def executescript(self, sql_script: str) -> InlineCursor:
        if self._disk.full:
            raise full_disk()
        return InlineCursor(self.raw.executescript(sql_script))

    async def close(self) -> None:
        self._cut_off()
