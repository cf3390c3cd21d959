"""A lane a target: how many account queries wait in its queue, which the database itself keeps up to date."""

from common.target import Target
from gateway.store.port import ReadTransaction


def queued(tx: ReadTransaction, target: Target) -> int:
    """Return how many queries of the target wait."""
    row = tx.one("query_lane_get", site=target.site, account=target.account)
    return 0 if row is None else int(row["queued"])


def ready(tx: ReadTransaction) -> list[Target]:
    """Return the targets of which any query waits."""
    return [Target(row["site"], row["account"]) for row in tx.all("query_lanes_ready")]
