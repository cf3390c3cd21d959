"""A short chaos test of real processes; `make kill` and `make soak` are the long ones."""

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.faults.chaos import ChaosTest, chaos_test

LOSSES = {
    "submits": "DELETE FROM tasks WHERE task_id = 't-1'",
    "reports": "DELETE FROM reports WHERE rowid = 1",
    "permits": "UPDATE leases SET permitted_at = NULL, permit_expires_us = NULL, permit_payable_yen = NULL, "
    "permit_terms_json = NULL",
    "order numbers": "DELETE FROM order_numbers WHERE task_id = 't-1'",
}

LOSSES_OF_A_SERVER = LOSSES | {
    "reports": "DELETE FROM reports WHERE ctid = (SELECT min(ctid) FROM reports)",
    "order numbers": "DELETE FROM order_numbers WHERE task_id = 't-2'",
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


def lose(url: str, statement: str) -> None:
    """Lets a database of a server lose something, whatever its triggers and foreign keys say."""
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        assert connection.execute(statement.encode()).rowcount


@pytest.mark.timeout(240)
@pytest.mark.extended
@pytest.mark.parametrize("rounds", [3, 12])
async def test_blows_never_make_a_second_order_nor_lose_what_was_acknowledged_and_a_loss_would_be_found(
    tmp_path: Path, rounds: int
) -> None:
    async with chaos_test(tmp_path, 1) as chaos:
        await no_violation_in(chaos, rounds)
        database = tmp_path / "data" / "gateway.db"
        for kind, statement in LOSSES.items():
            assert chaos.compare(without(database, statement)).lost[kind], kind
        chaos.promises.decisions.append(("t-1", "resolve", "a decision that was never written down"))
        assert chaos.compare(database).lost["decisions"]


@pytest.mark.needs("postgresql")
@pytest.mark.timeout(600)
@pytest.mark.extended
async def test_two_gateways_on_a_server_that_is_struck_too_keep_the_same_and_a_loss_would_be_found(
    tmp_path: Path,
) -> None:
    async with chaos_test(tmp_path, 2, gateways=2) as chaos:
        await no_violation_in(chaos, 12)
        url = str(chaos.database)
        lose(url, "UPDATE events SET status_before = 'stale' WHERE kind = 'lease'")
        assert chaos.contradictions()
        for kind, statement in LOSSES_OF_A_SERVER.items():
            lose(url, statement)
            assert chaos.compare(url).lost[kind], kind


async def no_violation_in(chaos: ChaosTest, rounds: int) -> None:
    for number in range(1, rounds + 1):
        await chaos.round(number)
    kept = await chaos.judge_books()
    assert not chaos.violations
    assert kept.counted["submits"] == rounds
    assert kept.counted["reports"] > rounds
