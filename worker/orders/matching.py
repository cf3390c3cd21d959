"""Compares what was wanted with what a page shows."""

from collections import Counter
from collections.abc import Iterable
from enum import Enum

from worker.sites.addresses import same_page
from worker.sites.port import Item, ListedOrder

Key = tuple[str, str | None, tuple[str, ...]]


class Overlap(Enum):
    """How the items of a listed order relate to those of an intent."""

    NONE = "none"
    PARTIAL = "partial"
    FULL = "full"


def difference(wanted: Iterable[Item], shown: Iterable[Item]) -> str | None:
    """None if both are exactly the same items, variants, choices and quantities; else what differs, in words."""
    want, show = _units(wanted), _units(shown)
    if want == show:
        return None
    parts = [f"{_words(key)}: wanted {want[key]}, shown {show[key]}" for key in want | show if want[key] != show[key]]
    return "; ".join(parts)


def _units(items: Iterable[Item]) -> Counter[Key]:
    units: Counter[Key] = Counter()
    for item in items:
        units[same_page(item.item_url), item.variant_id, item.choice] += item.quantity
    return units


def _words(key: Key) -> str:
    url, variant_id, choice = key
    return " ".join([url, *([f"variant {variant_id}"] if variant_id else []), *choice])


def overlap(wanted: Iterable[Item], order: ListedOrder) -> Overlap:
    """Return whether a listed order can be the one for these items. What the list does not show is taken as agreeing;
    everything that it shows must. An item that cannot be compared may be any.
    """
    if not all(item.comparable for item in order.items):
        return Overlap.PARTIAL
    want: dict[str, list[Item]] = {}
    for item in wanted:
        want.setdefault(same_page(item.item_url), []).append(item)
    listed = {same_page(item.item_url) for item in order.items}
    if not listed & want.keys():
        return Overlap.NONE
    if listed != want.keys():
        return Overlap.PARTIAL
    return Overlap.FULL if all(_agrees(url, items, order) for url, items in want.items()) else Overlap.PARTIAL


def _agrees(url: str, wanted: list[Item], order: ListedOrder) -> bool:
    shown = [item for item in order.items if same_page(item.item_url) == url]
    quantities = [item.quantity for item in shown if item.quantity is not None]
    if len(quantities) == len(shown) and sum(quantities) != sum(item.quantity for item in wanted):
        return False
    shown_variants = {item.variant_id for item in shown}
    wanted_variants = {item.variant_id for item in wanted}
    # None stands for "not shown" in the list and for "any in stock" in an intent: nothing to compare with.
    return None in shown_variants or None in wanted_variants or shown_variants == wanted_variants
