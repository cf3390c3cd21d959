"""Replays a history against the rules, which stand here once more: what it leaves must contradict none of them."""

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

ACTIVE = {"leased", "running"}


def contradictions(
    events: Sequence[Row], tasks: Sequence[Row], leases: Sequence[Row], *, permit_seconds: float, settle_seconds: float
) -> Counter[str]:
    """What is wrong with the history, in its order, and with the tasks and leases that it leads to."""
    bad: Counter[str] = Counter()
    _replay(events, {task["task_id"]: task for task in tasks}, bad)
    _permits_are_apart(leases, permit_seconds * 1e6, settle_seconds * 1e6, bad)
    return +bad


def _replay(events: Sequence[Row], tasks: Mapping[str, Row], bad: Counter[str]) -> None:
    """Let each event have its effect. A slot is known by the account, so a lease scope is global or account."""
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


def _permits_are_apart(leases: Sequence[Row], ttl_us: float, settle_us: float, bad: Counter[str]) -> None:
    """A second permit of a task waits until the first has settled. `leases` are in their order."""
    settled: dict[str, float] = {}
    for lease in leases:
        if lease["permit_expires_us"] is None:
            continue
        granted = lease["permit_expires_us"] - ttl_us
        bad["a permit before the former one had settled"] += granted < settled.get(lease["task_id"], 0)
        settled[lease["task_id"]] = max(lease["permit_expires_us"], lease["ended_us"] or 0) + settle_us
