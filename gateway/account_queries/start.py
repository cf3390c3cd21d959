"""What happens to open queries when the gateway starts."""

from datetime import timedelta

from gateway.account_queries.timeouts import lapse
from gateway.domain.account_queries import QueryPolicy
from gateway.domain.instant import Instant, microseconds, parse_utc
from gateway.store.port import Transaction
from gateway.store.query_rows import query_from


def resume_queries_after_start(
    tx: Transaction, now: Instant, policy: QueryPolicy, *, clock_continues: bool, wall_utc: str
) -> int:
    """Judge what a former process left, and return how many leases were given up.

    If the service clock continues (same boot) there is nothing to do. If not, how long the machine was off is known by
    the wall clock only: each query keeps what is left of its lifetime by that, and every lease counts as lapsed. Doubt
    falls towards reading again, which does no harm.
    """
    if clock_continues:
        return 0
    for row in tx.all("queries_open"):
        age = parse_utc(wall_utc) - parse_utc(row["created_at"])
        left = min(max(policy.lifetime - age, timedelta(0)), policy.lifetime)
        tx.change(
            "query_rebase_lifetime", query_id=row["query_id"], lifetime_ends_us=now.elapsed_us + microseconds(left)
        )
    leased = [query_from(row) for row in tx.all("queries_leased")]
    for query in leased:
        lapse(tx, now, policy, query)
    return len(leased)
