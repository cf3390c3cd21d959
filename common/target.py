"""Where an order is placed and a query reads: an account on a site (docs/specification.md#accounts)."""

from collections.abc import Iterable
from typing import Final, NamedTuple

ONLY_ACCOUNT: Final = ""
"""The account of a site that has no other, as far as its upstreams and workers say."""


class Target(NamedTuple):
    """A site and an account on it."""

    site: str
    account: str = ONLY_ACCOUNT

    def __str__(self) -> str:
        """Return what people read."""
        return f"{self.site}/{self.account}" if self.account else self.site


def targets(sites: Iterable[str], accounts: Iterable[str]) -> tuple[Target, ...]:
    """Return what a worker serves that has each of these accounts on each of these sites."""
    each = tuple(accounts)
    return tuple(Target(site, account) for site in sites for account in each)
