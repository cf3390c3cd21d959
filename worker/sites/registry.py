"""Which adapters a worker has, and what each takes from the environment.

A new site is a base class more of `SiteSettings`, where it has settings, and a function more in `BUILDERS`.
"""

from collections.abc import Callable, Iterable
from typing import Final

from common.target import ONLY_ACCOUNT
from worker.sites.port import Site
from worker.sites.rakuten import RakutenSite
from worker.sites.sandbox.adapter import SandboxSite
from worker.sites.sandbox.settings import SandboxSettings


class SiteSettings(SandboxSettings):
    """The settings of all adapters; part of the worker's."""


def build_rakuten(_settings: SiteSettings, account: str, _timeout_seconds: float) -> Site:
    """Build Rakuten's adapter, which cannot order yet."""
    return RakutenSite(account)


def build_sandbox(settings: SiteSettings, account: str, timeout_seconds: float) -> Site | None:
    """Build the sandbox's adapter, which logs in as the account; None where no shop's address is set."""
    if not settings.sandbox_url:
        return None
    return SandboxSite(settings.sandbox_url, account=account, timeout_seconds=timeout_seconds)


BUILDERS: Final[tuple[Callable[[SiteSettings, str, float], Site | None], ...]] = (build_rakuten, build_sandbox)


def build_sites(
    settings: SiteSettings, accounts: Iterable[str] = (ONLY_ACCOUNT,), *, timeout_seconds: float = 30
) -> list[Site]:
    """Build every adapter that the settings allow, one for each account. Whoever builds them closes them.

    `timeout_seconds`: most that connecting to a site, or one silence of it, may last.
    """
    return [
        site
        for account in accounts
        for build in BUILDERS
        if (site := build(settings, account, timeout_seconds)) is not None
    ]
