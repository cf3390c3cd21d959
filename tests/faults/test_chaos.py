"""A short chaos test of real processes; `make kill` and `make soak` are the long ones."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.chaos import chaos_test

LOSSES = {
    "submits": "DELETE FROM tasks WHERE task_id = 't-1'",
    "reports": "DELETE FROM reports WHERE rowid = 1",
    "permits": "UPDATE leases SET permitted_at = NULL, permit_expires_us = NULL",
    "order numbers": "DELETE FROM order_numbers WHERE task_id = 't-1'",
}


def without(database: Path, statement: str) -> Path:
    """A copy of the gateway's database that has lost something."""
    copy = database.with_name("lossy.db")
    copy.unlink(missing_ok=True)
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(copy, isolation_level=None)) as target:
        source.backup(target)
        for (trigger,) in target.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            target.execute(f"DROP TRIGGER {trigger}")
        assert target.execute(statement).rowcount
    return copy


@pytest.mark.timeout(240)
@pytest.mark.extended
@pytest.mark.parametrize("rounds", [3, 12])
async def test_blows_never_make_a_second_order_nor_lose_what_was_acknowledged_and_a_loss_would_be_found(
    tmp_path: Path, rounds: int
) -> None:
    async with chaos_test(tmp_path, 1) as chaos:
        for number in range(1, rounds + 1):
            await chaos.round(number)
        kept = await chaos.judge_books()
        assert not chaos.violations
        assert kept.counted["submits"] == rounds
        assert kept.counted["reports"] > rounds

        database = tmp_path / "data" / "gateway.db"
        for kind, statement in LOSSES.items():
            assert chaos.compare(without(database, statement)).lost[kind], kind
        chaos.promises.decisions.append(("t-1", "resolve", "a decision that was never written down"))
        assert chaos.compare(database).lost["decisions"]
