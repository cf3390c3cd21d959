"""Four gateways race on one database; what they leave is replayed against the rules.

The mutant without the writer's lock must be found out: then the rules above it are what this test sees.
"""

import asyncio
import json
import sys
from collections import Counter, defaultdict
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from tests.gateway.store.postgres import race

pytestmark = [pytest.mark.needs("postgresql"), pytest.mark.timeout(300)]

PROCESSES = 4
ACTIVE = {"leased", "running"}


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
    bad: Counter[str] = Counter()
    events = rows(url, "SELECT * FROM events WHERE subject <> '' ORDER BY sequence")
    tasks = {row["task_id"]: row for row in rows(url, "SELECT * FROM tasks")}
    replay(events, tasks, bad)
    permits_are_apart(rows(url, "SELECT * FROM leases ORDER BY task_id, lease_number"), bad)
    acknowledged_is_there(events, tasks, told, bad)
    return bad


def replay(events: list[dict[str, Any]], tasks: dict[str, dict[str, Any]], bad: Counter[str]) -> None:
    """Let each event of the history have its effect, in order."""
    status: dict[str, str | None] = {}
    active: dict[str, set[str]] = defaultdict(set)
    permits: Counter[tuple[str, int]] = Counter()
    last_at = ""
    for event in events:
        task_id, before, after = event["subject"], event["status_before"], event["status_after"]
        bad["the history goes back in time"] += event["occurred_at"] < last_at
        last_at = max(last_at, event["occurred_at"])
        if event["kind"] == "permit":
            permit = task_id, json.loads(event["details_json"])["lease_count"]
            permits[permit] += 1
            bad["two permits of one lease"] += permits[permit] > 1
        if after is None:
            continue
        bad["the status before is not what it was"] += status.get(task_id) != before
        status[task_id] = after
        slot = active[tasks[task_id]["account"]]
        slot.add(task_id) if after in ACTIVE else slot.discard(task_id)
        bad["two are active in one slot"] += len(slot) > 1
    for task_id, task in tasks.items():
        bad["a task is not what its history says"] += status.get(task_id) != task["status"]


def permits_are_apart(leases: list[dict[str, Any]], bad: Counter[str]) -> None:
    """A second permit of a task waits until the first has settled."""
    ttl, settle = race.PERMIT_TTL.total_seconds() * 1e6, race.SETTLE.total_seconds() * 1e6
    settled: dict[str, float] = {}
    for lease in leases:
        if lease["permit_expires_us"] is None:
            continue
        granted = lease["permit_expires_us"] - ttl
        bad["a permit before the former one had settled"] += granted < settled.get(lease["task_id"], 0)
        settled[lease["task_id"]] = max(lease["permit_expires_us"], lease["ended_us"] or 0) + settle


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
