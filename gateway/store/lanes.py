"""A lane a target: its oldest queued task and the one in execution, which the database itself keeps up to date."""

from common.target import Target
from gateway.store.port import Transaction


def add(tx: Transaction, target: Target) -> None:
    """Know a target for which nothing was filed yet."""
    tx.change_any("lane_add", site=target.site, account=target.account)
