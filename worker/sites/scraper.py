"""The scraper: tells which variants an item has and which are in stock (`POST {base}/api/item_detail`)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import httpx

from worker.sites.port import Item, ItemUnavailableError

MAX_ANSWER_BYTES = 4 * 1024 * 1024


class ScraperError(Exception):
    """The scraper could not be asked, or its answer could not be read. The message says which and why."""


class Scraper(Protocol):
    """Fills in what an intent leaves to the worker."""

    async def first_variant_in_stock(self, item_url: str) -> str | None:
        """Return the variant to buy; None if the item has none. Raises ItemUnavailableError, ScraperError."""
        ...


class NoScraper:
    """Where no scraper is configured: an item without a variant_id is taken as having no variants."""

    async def first_variant_in_stock(self, item_url: str) -> str | None:
        """See Scraper."""
        del item_url
        return None


class HttpScraper:
    """The scraper over HTTP. Reading has no side effect, so the connection may be kept and a request repeated."""

    def __init__(self, client: httpx.AsyncClient, base_url: str, token: str | None) -> None:
        self._client = client
        self._url = f"{base_url}/api/item_detail"
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def first_variant_in_stock(self, item_url: str) -> str | None:
        """See Scraper."""
        variants = _variants(await self._ask(item_url))
        if not variants:
            return None
        for variant_id, in_stock in variants:
            if in_stock:
                return variant_id
        raise ItemUnavailableError(f"no variant of {item_url} is in stock")

    async def _ask(self, item_url: str) -> Any:
        try:
            async with self._client.stream(
                "POST", self._url, json={"item_url": item_url}, headers=self._headers
            ) as response:
                body = bytearray()
                async for part in response.aiter_bytes():
                    body += part
                    if len(body) > MAX_ANSWER_BYTES:
                        raise ScraperError(f"the scraper's answer is larger than {MAX_ANSWER_BYTES} bytes")
        except httpx.HTTPError as error:
            raise ScraperError(f"the scraper cannot be reached: {error!r}") from error
        if response.status_code != httpx.codes.OK:
            raise ScraperError(f"the scraper answered HTTP {response.status_code}")
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            raise ScraperError(f"the scraper's answer is not JSON: {error}") from error


def _variants(answer: Any) -> list[tuple[str, bool]]:
    """(variant_id, in stock) in the scraper's order; empty for an item without variants."""
    try:
        purchase = answer["data"]["purchase"]
        variants = purchase.get("variants") or []
        return [(_variant_id(variant["variant_id"]), variant["in_stock"] is True) for variant in variants]
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ScraperError(f"the scraper's answer lacks data.purchase.variants[]: {error!r}") from error


def _variant_id(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError("variant_id is no text")
    return str(value)


async def fill_in_variants(items: Sequence[Item], scraper: Scraper) -> tuple[Item, ...]:
    """Return the items with a variant each where they have any. Raises ItemUnavailableError, ScraperError."""
    filled_in = []
    for item in items:
        variant_id = item.variant_id or await scraper.first_variant_in_stock(item.item_url)
        filled_in.append(replace(item, variant_id=variant_id))
    return tuple(filled_in)
