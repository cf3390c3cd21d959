"""Which adapters there are, and what Rakuten's says."""

import inspect

import pytest

from tests.worker.running_shop import no_look
from worker.sites.port import Confirmation, Item, Page, Site, Submission, by_target, sites_that_can_order
from worker.sites.rakuten import RakutenSite
from worker.sites.registry import SiteSettings, build_sites

PAGE = Page("", "GET", 200, b"")
ARGUMENTS = {
    "check_session": ((), {}),
    "clear_cart": ((), {}),
    "add_to_cart": ((Item("https://item.example/a/"),), {}),
    "read_cart": ((), {}),
    "open_confirmation": (({},), {}),
    "submit": ((Confirmation((), None, {}, PAGE), no_look), {}),
    "read_thanks": ((Submission("1", PAGE, "/thanks"),), {}),
    "pay": (("1", 1000, {}, no_look), {}),
    "list_orders": ((), {"since": None, "max_pages": 1}),
    "order_detail": (("1",), {}),
}


def test_every_operation_of_the_seam_is_covered_here() -> None:
    operations = {name for name, member in vars(Site).items() if inspect.iscoroutinefunction(member)}
    assert operations == {*ARGUMENTS, "close"}


@pytest.mark.parametrize("operation", ARGUMENTS)
async def test_rakuten_guesses_nothing(operation: str) -> None:
    positional, named = ARGUMENTS[operation]
    with pytest.raises(NotImplementedError, match="never tried on the real site"):
        await getattr(RakutenSite(), operation)(*positional, **named)


async def test_only_configured_sites_can_order() -> None:
    sites = build_sites(SiteSettings())
    assert [site.name for site in sites] == ["rakuten"]
    assert sites_that_can_order(sites) == []
    sites = build_sites(SiteSettings(sandbox_url="http://127.0.0.1:31115/"))
    assert [site.name for site in sites] == ["rakuten", "sandbox"]
    assert sites_that_can_order(sites) == ["sandbox"]
    for site in sites:
        await site.close()


async def test_an_account_has_an_adapter_of_its_own_on_each_site() -> None:
    sites = build_sites(SiteSettings(sandbox_url="http://127.0.0.1:31115/"), ("", "a"))
    assert sorted(map(str, by_target(sites))) == ["rakuten", "rakuten/a", "sandbox", "sandbox/a"]
    assert sites_that_can_order(sites) == ["sandbox"]
    for site in sites:
        await site.close()


@pytest.mark.parametrize("url", ["127.0.0.1:1", "ftp://127.0.0.1", "http://127.0.0.1/shop", "http:///x"])
def test_an_address_must_be_an_origin(url: str) -> None:
    with pytest.raises(ValueError, match="scheme, host and port"):
        SiteSettings(sandbox_url=url)
