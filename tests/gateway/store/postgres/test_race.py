"""Four gateways race on one database; what they leave is replayed against the rules.

The mutant without the writer's lock must be found out: then the rules above it are what this test sees.
"""

import asyncio
import json
import sys
from collections import Counter
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.gateway.store.postgres import race
from tests.gateway.support import replay

pytestmark = [pytest.mark.needs("postgresql"), pytest.mark.timeout(300)]

PROCESSES = 4


async def run_race(url: str, seconds: float, slots: int, *mutant: str, seed: int = 0) -> list[dict[str, Any]]:
    """Let the gateways race, each a process, with seeds from this one on; return what each acknowledged."""
    racing = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-m", race.__name__, url, str(seconds), str(seed + number), str(slots), *mutant,
            stdout=asyncio.subprocess.PIPE,
        )
        for number in range(PROCESSES)
    ]  # fmt: skip
    printed = await asyncio.gather(*(process.communicate() for process in racing))
    assert [process.returncode for process in racing] == [0] * PROCESSES
    return [json.loads(out) for out, _ in printed]


def rows(url: str, sql: str) -> list[dict[str, Any]]:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        return connection.execute(sql.encode()).fetchall()


def contradictions(url: str, told: list[dict[str, Any]]) -> Counter[str]:
    """What is wrong with the history, with the tasks it leads to, or with what was acknowledged."""
    events = rows(url, "SELECT * FROM events WHERE subject <> '' ORDER BY sequence")
    tasks = rows(url, "SELECT * FROM tasks")
    bad = replay.contradictions(
        events,
        tasks,
        rows(url, "SELECT * FROM leases ORDER BY task_id, lease_number"),
        permit_seconds=race.PERMIT_TTL.total_seconds(),
        settle_seconds=race.SETTLE.total_seconds(),
    )
    acknowledged_is_there(events, {task["task_id"]: task for task in tasks}, told, bad)
    return bad


def acknowledged_is_there(
    events: list[dict[str, Any]], tasks: dict[str, Any], told: list[dict[str, Any]], bad: Counter[str]
) -> None:
    """Nothing that a caller was told is missing."""
    kinds = Counter((event["subject"], event["kind"]) for event in events)
    for one in told:
        bad["a submission is lost"] += sum(task_id not in tasks for task_id in one["submitted"])
        bad["an end is lost"] += sum(tasks[task_id]["end_state"] is None for task_id in one["ended"])
    leased = Counter(task_id for one in told for task_id, _ in one["leased"])
    for task_id, count in leased.items():
        given = kinds[task_id, "lease"] + kinds[task_id, "reclaim"]
        bad["a lease is lost"] += given < count
    for task_id in {task_id for one in told for task_id, _ in one["permitted"]}:
        bad["a permit is lost"] += not kinds[task_id, "permit"]


def summary(told: list[dict[str, Any]]) -> Counter[str]:
    done = Counter({name: sum(len(one["told"][name]) for one in told) for name in told[0]["told"]})
    done["operations"] = sum(one["operations"] for one in told)
    return done


@pytest.mark.parametrize(("seconds", "slots"), [
    (4, 1), (4, 50), pytest.param(60, 1, marks=pytest.mark.extended), pytest.param(60, 50, marks=pytest.mark.extended),
])  # fmt: skip
async def test_what_a_race_leaves_contradicts_no_rule(
    url: str, seconds: float, slots: int, record_property: Any
) -> None:
    told = await run_race(url, seconds, slots)
    record_property("race", dict(summary(told)))
    assert {fault for one in told for fault in one["faults"]} == set()
    assert +contradictions(url, [one["told"] for one in told]) == Counter()
    done = summary(told)
    assert min(done["submitted"], done["leased"]) > 5, done


async def test_without_the_writer_s_lock_rules_are_broken(url: str) -> None:
    told: list[dict[str, Any]] = []
    broken: Counter[str] = Counter()
    while not broken and len(told) < 8 * PROCESSES:  # on a busy machine they meet less often
        told += await run_race(url, 5, 1, "without-the-lock", seed=len(told))
        broken = +contradictions(url, [one["told"] for one in told])
    assert broken, {fault for one in told for fault in one["faults"]}
