"""Targets that are known: who named each first, and when it was last used (docs/specification.md#accounts)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from common.target import Target
from gateway.domain.instant import Instant, microseconds
from gateway.store.port import ReadTransaction, Transaction

_STAMPED_EVERY_US: Final = microseconds(timedelta(days=1))
"""A use is written down if none was for so long: an order more costs nothing."""


@dataclass(frozen=True, slots=True)
class Unused:
    """A target that nobody has named for long, by the service clock; what may be in use all the same."""

    target: Target
    used_us: int
    is_used: bool
    has_queries: bool


def stamped_after_us(now: Instant) -> int:
    """Return after when a use must have been written down for another one not to be."""
    return now.elapsed_us - _STAMPED_EVERY_US


def is_stamped(tx: ReadTransaction, now: Instant, target: Target) -> bool | None:
    """Tell whether a use of a target was written down lately; None: nobody knows it."""
    row = tx.one("target_get", site=target.site, account=target.account, stamped_after_us=stamped_after_us(now))
    return None if row is None else bool(row["is_stamped"])


def use(tx: Transaction, now: Instant, target: Target, identity: str) -> None:
    """Write down that a target is used now, and who named it if nobody did before."""
    tx.change_one("target_use", site=target.site, account=target.account, identity=identity, elapsed_us=now.elapsed_us)


def keep(tx: Transaction, now: Instant, target: Target) -> None:
    """Write down that a target is used which nobody names; one that is not known stays so."""
    tx.change_any(
        "target_keep",
        site=target.site,
        account=target.account,
        elapsed_us=now.elapsed_us,
        stamped_after_us=stamped_after_us(now),
    )


def introduced(tx: ReadTransaction, identity: str) -> tuple[int, int]:
    """Return how many accounts are known that a token's identity has named first, and how many in all."""
    row = tx.one("target_counts", identity=identity)
    return (0, 0) if row is None else (int(row["of_identity"]), int(row["in_all"]))


def begin(tx: Transaction, now: Instant, count: int) -> int:
    """Count up to `count` targets of which no use was ever written down as used now; return how many."""
    return tx.change("targets_begin", elapsed_us=now.elapsed_us, count=count)


def unused(tx: ReadTransaction, before_us: int, after: Unused | None, count: int) -> Sequence[Unused]:
    """Return up to `count` accounts behind `after` that nobody has named since, the longest unused first.

    A site's only account is never among them.
    """
    site, account = ("", "") if after is None else after.target
    rows = tx.all(
        "targets_unused",
        before_us=before_us,
        after_us=-1 if after is None else after.used_us,
        after_site=site,
        after_account=account,
        count=count,
    )
    return [
        Unused(Target(row["site"], row["account"]), row["used_us"], bool(row["is_used"]), bool(row["has_queries"]))
        for row in rows
    ]


def forget(tx: Transaction, target: Target) -> None:
    """Forget a target, of which nothing is in the queue or in execution, with its lanes."""
    tx.change_any("lane_forget", site=target.site, account=target.account)
    tx.change_any("query_lane_forget", site=target.site, account=target.account)
    tx.change_one("target_forget", site=target.site, account=target.account)
