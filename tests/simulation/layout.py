"""The kinds of world that are simulated, and what one is made of: gateways, accounts, and who serves which of them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from common.target import ONLY_ACCOUNT, Target, targets
from gateway.domain.models import LeaseScope

SITE = "sandbox"
SITES = (SITE, "bazaar")
NAMES = ("worker-a", "worker-b", "worker-c")


class World(StrEnum):
    """A kind of world."""

    ALONE = "alone"
    """One gateway on its file, one account."""
    ACCOUNTS = "accounts"
    """One gateway on its file, several accounts on two sites, several workers that each serve some of them."""
    GATEWAYS = "gateways"
    """Two or three gateways on one database."""
    CONDITIONS = "conditions"
    """One gateway on its file, one account, and orders that are only wanted on conditions."""


@dataclass(frozen=True, slots=True)
class Serves:
    """With which accounts a worker orders, on each of its sites."""

    sites: tuple[str, ...] = (SITE,)
    accounts: tuple[str, ...] = (ONLY_ACCOUNT,)

    @property
    def targets(self) -> tuple[Target, ...]:
        return targets(self.sites, self.accounts)


@dataclass(frozen=True, slots=True)
class Layout:
    """What a world is made of: what each worker serves, and how many tasks may be in execution at once."""

    workers: Sequence[Serves]
    scope: LeaseScope = LeaseScope.GLOBAL
    gateways: int = 1

    @property
    def sites(self) -> tuple[str, ...]:
        """Every site that somebody serves."""
        return tuple(dict.fromkeys(target.site for target in self.targets))

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every target that somebody serves."""
        return tuple(dict.fromkeys(chain.from_iterable(serves.targets for serves in self.workers)))

    def slot(self, target: Target) -> str:
        """The name of the slot in which a task of this target is executed (docs/specification.md#slots)."""
        match self.scope:
            case LeaseScope.GLOBAL:
                return "global"
            case LeaseScope.SITE:
                return f"site:{target.site}"
            case LeaseScope.ACCOUNT:
                return f"account:{target.site}:{target.account}"


def alone(workers: int) -> Layout:
    """One account for all workers."""
    return Layout((Serves(),) * workers)


def with_accounts(seed: int, chance: random.Random) -> Layout:
    """Workers whose accounts overlap, or not; the scopes take turns with the seeds."""
    anna, ben = Serves(SITES, ("anna",)), Serves((SITE,), ("ben", "anna"))
    rest = Serves((chance.choice(SITES),), (ONLY_ACCOUNT, "ben"))
    return Layout(
        chance.choice(((anna, ben), (anna, ben, rest), (ben, rest, ben), (anna, rest))),
        (LeaseScope.ACCOUNT, LeaseScope.SITE, LeaseScope.GLOBAL)[seed % 3],
    )


def with_gateways(seed: int, chance: random.Random) -> Layout:
    """Mostly two gateways and one account; every fourth world has several accounts."""
    gateways = chance.choice((2, 2, 3))
    if seed % 4 == 0:
        return replace(with_accounts(seed, chance), gateways=gateways)
    return Layout((Serves(),) * chance.choice((1, 2, 2)), gateways=gateways)
