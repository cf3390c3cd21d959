"""What happens to open leases when the gateway starts."""

from dataclasses import dataclass

from gateway.domain.instant import Instant, microseconds, parse_utc
from gateway.domain.models import GATEWAY, Policy
from gateway.orders.expire import expire
from gateway.store import leases, tasks
from gateway.store.port import Transaction


@dataclass(frozen=True, slots=True)
class Started:
    """What the start did: leases given up as stale, leases kept."""

    stale: int
    kept: int


def resume_after_start(
    tx: Transaction, now: Instant, policy: Policy, *, clock_continues: bool, moved_ahead_us: int, wall_utc: str
) -> Started:
    """Re-key the slots to the configured scope and judge the leases that a former process left.

    If the service clock continues (same boot) it judges them as always. If not, the wall clock has to: a lease that has
    run out by it, or any lease if the wall clock has gone back, is stale, since doubt falls towards stale
    (docs/specification.md#slots). `wall_utc` is the wall clock's own reading, which `now.utc` never falls behind.
    What has ended is settled later by `moved_ahead_us`, by which the service clock was put ahead.
    """
    leases.settle_later(tx, moved_ahead_us)
    stale = 0
    active = tasks.active(tx)
    for task in active:
        tasks.rekey_slot(tx, task, f"site:{task.site}:{task.task_id}")
    taken: set[str] = set()
    for task in active:
        slot = policy.slot(task.target)
        if slot not in taken:
            taken.add(slot)
            tasks.rekey_slot(tx, task, slot)
        if clock_continues:
            continue
        left = parse_utc(task.lease_expires_at or now.utc) - parse_utc(wall_utc)
        if wall_utc < now.utc or left.total_seconds() <= 0:
            expire(tx, now, task, GATEWAY, reason="the machine was restarted and the lease may have run out")
            stale += 1
        else:
            tasks.rebase_deadline(tx, task, now.elapsed_us + microseconds(left))
    return Started(stale, len(active) - stale)
