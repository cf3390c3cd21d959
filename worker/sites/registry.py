"""Which adapters a worker has, and what each takes from the environment.

A new site is a base class more of `SiteSettings`, where it has settings, and a function more in `BUILDERS`.
"""

from collections.abc import Callable
from typing import Final

from worker.sites.port import Site
from worker.sites.rakuten import RakutenSite
from worker.sites.sandbox.adapter import SandboxSite
from worker.sites.sandbox.settings import SandboxSettings


class SiteSettings(SandboxSettings):
    """The settings of all adapters; part of the worker's."""


def build_rakuten(_settings: SiteSettings, _timeout_seconds: float) -> Site:
    """Build Rakuten's adapter, which cannot order yet."""
    return RakutenSite()


def build_sandbox(settings: SiteSettings, timeout_seconds: float) -> Site | None:
    """Build the sandbox's adapter, for the account that the shop opens with; None where no shop's address is set."""
    return SandboxSite(settings.sandbox_url, timeout_seconds=timeout_seconds) if settings.sandbox_url else None


BUILDERS: Final[tuple[Callable[[SiteSettings, float], Site | None], ...]] = (build_rakuten, build_sandbox)


def build_sites(settings: SiteSettings, *, timeout_seconds: float = 30) -> list[Site]:
    """Build every adapter that the settings allow. Whoever builds them closes them.

    `timeout_seconds`: most that connecting to a site, or one silence of it, may last.
    """
    return [site for build in BUILDERS if (site := build(settings, timeout_seconds)) is not None]
