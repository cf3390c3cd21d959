"""What happens to open queries when the gateway starts."""

from datetime import timedelta

from gateway.account_queries.timeouts import time_out
from gateway.domain.account_queries import QueryPolicy
from gateway.domain.instant import Instant, microseconds, parse_utc
from gateway.store import account_queries
from gateway.store.port import Transaction


def resume_queries_after_start(
    tx: Transaction, now: Instant, policy: QueryPolicy, *, clock_continues: bool, wall_utc: str
) -> int:
    """Judge what a former process left, and return how many leases were given up.

    If the service clock continues (same boot) there is nothing to do. If not, how long the machine was off is known by
    the wall clock only: each query keeps what is left of its lifetime by that, and every lease counts as timed out.
    Doubt falls towards reading again, which does no harm.
    """
    if clock_continues:
        return 0
    for query in account_queries.queued_or_leased(tx):
        age = parse_utc(wall_utc) - parse_utc(query.created_at)
        left = min(max(policy.lifetime - age, timedelta(0)), policy.lifetime)
        account_queries.rebase_lifetime(tx, query.query_id, now.elapsed_us + microseconds(left))
    leased = account_queries.leased(tx)
    for query in leased:
        time_out(tx, now, policy, query)
    return len(leased)
