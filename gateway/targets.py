"""Naming targets: a token brings a bounded number of accounts, and those that are not used are forgotten.

The rule: docs/specification.md#accounts. Each account that anybody names is a row that leases, metrics and the
catalogue know from then on, so whoever names one comes by here.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from common.target import ONLY_ACCOUNT, Target
from gateway.domain.instant import Instant, microseconds
from gateway.domain.refusals import Reason, Refusal, Violation
from gateway.store import targets
from gateway.store.port import ReadTransaction, Transaction

MAX_OF_A_TOKEN: Final = 10_000
"""Accounts that one token's identity may have named first."""

MAX_IN_ALL: Final = 100_000

UNUSED: Final = timedelta(days=90)
"""How long an account is known without being used."""

_ASK_AGAIN: Final = timedelta(seconds=60)


def use(tx: Transaction, now: Instant, wanted: Iterable[Target], identity: str) -> Refusal | None:
    """Note that targets are used now; those that nobody has named yet are known from then on.

    Refused, and none of them is noted, where a token names more accounts than it may. A site's only account may always
    be named.
    """
    stamped = {target: targets.is_stamped(tx, now, target) for target in wanted}
    new = sum(known is None and target.account != ONLY_ACCOUNT for target, known in stamped.items())
    refusal = _too_many(tx, identity, new) if new else None
    if refusal is None:
        for target in (target for target, lately in stamped.items() if not lately):
            targets.use(tx, now, target, identity)
    return refusal


def unused_since_us(now: Instant) -> int:
    """Return until when a target must have been used last to count as unused, by the service clock."""
    return now.elapsed_us - microseconds(UNUSED)


def _too_many(tx: ReadTransaction, identity: str, new: int) -> Refusal | None:
    of_identity, in_all = targets.introduced(tx, identity)
    if of_identity + new > MAX_OF_A_TOKEN:
        said = (
            f"{identity} has named {of_identity:,} accounts, and {MAX_OF_A_TOKEN:,} is the limit for one "
            "token: name accounts that are known, or further ones with another token"
        )
    elif in_all + new > MAX_IN_ALL:
        said = (
            f"{in_all:,} accounts are known, and {MAX_IN_ALL:,} is the limit: name accounts that are known, "
            "or take a second installation for further ones"
        )
    else:
        return None
    said = f"{said}; an account that is not used for {UNUSED.days} days is forgotten"
    violation = Violation("account", said)
    return Refusal(Reason.TOO_MANY, f"account: {said}", violations=(violation,), retry_after=_ASK_AGAIN)
