"""Which adapters a worker has."""

from worker.sites.port import Site
from worker.sites.rakuten import RakutenSite
from worker.sites.sandbox.adapter import SandboxSite
from worker.sites.sandbox.http import Credentials


def build_sites(
    *,
    sandbox_url: str | None = None,
    sandbox_username: str | None = None,
    sandbox_password: str | None = None,
    timeout_seconds: float = 30,
) -> list[Site]:
    """Rakuten's adapter, and the sandbox shop's where its address is given.

    Without a username and password the account that the sandbox shop opens with is used. Raises ValueError where the
    address is more than scheme, host and port.
    """
    sites: list[Site] = [RakutenSite()]
    if sandbox_url:
        given = sandbox_username is not None and sandbox_password is not None
        credentials = Credentials(sandbox_username or "", sandbox_password or "") if given else Credentials()
        sites.append(SandboxSite(sandbox_url, credentials, timeout_seconds=timeout_seconds))
    return sites
