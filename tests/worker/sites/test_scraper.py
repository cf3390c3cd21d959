"""The scraper's answers, good and bad, over a real socket."""

from collections.abc import AsyncIterator

import httpx
import pytest

from tests.worker.running_shop import RunningShop, running_shop
from worker.sites.port import Item, ItemUnavailableError
from worker.sites.scraper import HttpScraper, NoScraper, ScraperError, fill_in_variants

TOKEN = "sandbox-token"


@pytest.fixture
async def shop() -> AsyncIterator[RunningShop]:
    async with running_shop() as shop:
        yield shop


@pytest.fixture
async def http() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=30) as client:
        yield client


async def test_the_first_variant_in_stock_is_chosen(shop: RunningShop, http: httpx.AsyncClient) -> None:
    scraper = HttpScraper(http, shop.url, TOKEN)
    assert await scraper.first_variant_in_stock(shop.item_url("tshirt-basic")) == "white-m"
    await shop.control.change_item("tshirt-basic", stock={"white-m": 0})
    assert await scraper.first_variant_in_stock(shop.item_url("tshirt-basic")) == "white-l"


async def test_nothing_in_stock_is_unavailable(shop: RunningShop, http: httpx.AsyncClient) -> None:
    gone = {"white-m": 0, "white-l": 0, "navy-m": 0}
    await shop.control.change_item("tshirt-basic", stock=gone)
    with pytest.raises(ItemUnavailableError):
        await HttpScraper(http, shop.url, TOKEN).first_variant_in_stock(shop.item_url("tshirt-basic"))


async def test_only_what_the_intent_leaves_open_is_filled_in(shop: RunningShop, http: httpx.AsyncClient) -> None:
    scraper = HttpScraper(http, shop.url, TOKEN)
    items = (Item(shop.item_url("tshirt-basic"), 2, "navy-m"), Item(shop.item_url("sencha-100g")))
    assert await fill_in_variants(items, scraper) == items
    assert await fill_in_variants(items[1:], NoScraper()) == items[1:]


@pytest.mark.parametrize("token", [None, "wrong"])
async def test_a_refused_token_is_told(shop: RunningShop, http: httpx.AsyncClient, token: str | None) -> None:
    with pytest.raises(ScraperError, match="HTTP 401"):
        await HttpScraper(http, shop.url, token).first_variant_in_stock(shop.item_url("sencha-100g"))


async def test_a_scraper_that_is_away_is_told(http: httpx.AsyncClient) -> None:
    with pytest.raises(ScraperError, match="cannot be reached"):
        await HttpScraper(http, "http://127.0.0.1:9", TOKEN).first_variant_in_stock("https://item.example/x/")


@pytest.mark.parametrize(
    "body",
    [
        b"not json",
        b"[]",
        b'{"data": null}',
        b'{"data": {"purchase": {"variants": [{"in_stock": true}]}}}',
        b'{"data": {"purchase": {"variants": [{"variant_id": true, "in_stock": true}]}}}',
        b'{"data": {"purchase": {"variants": 5}}}',
        b" " * (4 * 1024 * 1024 + 1),
    ],
)
async def test_an_answer_that_cannot_be_read_is_told(body: bytes) -> None:
    transport = httpx.MockTransport(lambda request: httpx.Response(200, content=body))
    async with httpx.AsyncClient(transport=transport) as client:
        with pytest.raises(ScraperError):
            await HttpScraper(client, "http://scraper", TOKEN).first_variant_in_stock("https://item.example/x/")


async def test_an_item_without_variants_needs_none() -> None:
    body = {"data": {"purchase": {"variants": []}}}
    transport = httpx.MockTransport(lambda request: httpx.Response(200, json=body))
    async with httpx.AsyncClient(transport=transport) as client:
        assert await HttpScraper(client, "http://scraper", TOKEN).first_variant_in_stock("https://x.example/") is None
