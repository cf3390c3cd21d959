"""Lists in parts: pages that go on where the last one ended, slices by number, and how much a page may hold."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

T = TypeVar("T")
K = TypeVar("K")
R = TypeVar("R")

MAX_PAGE_BYTES: Final = 3 * 1024 * 1024
"""About how large a page may become; a client takes messages of 4 MiB by default."""

_BATCH: Final = 16


@dataclass(frozen=True, slots=True)
class Page(Generic[T, K]):
    """Some items of a list, and the position of the last one, where the next page begins; None on the last page."""

    items: tuple[T, ...]
    next_after: K | None


@dataclass(frozen=True, slots=True)
class Slice(Generic[T]):
    """Some items of a list, left out and counted by number, and how many there are in all."""

    items: tuple[T, ...]
    total: int


@dataclass(frozen=True, slots=True)
class Filled(Generic[T]):
    """A page: its items, and whether more follow."""

    items: tuple[T, ...]
    more: bool


def fill(items: Iterable[T], count: int, size_of: Callable[[T], int]) -> Filled[T]:
    """Take up to `count` items, fewer where they are large, but at least one. `size_of` may say too many bytes."""
    taken: list[T] = []
    size = 0
    for item in items:
        size += size_of(item)
        if len(taken) == count or (taken and size > MAX_PAGE_BYTES):
            return Filled(tuple(taken), more=True)
        taken.append(item)
    return Filled(tuple(taken), more=False)


def in_batches(read: Callable[[int, int], Sequence[R]], below: int, key_of: Callable[[R], int]) -> Iterator[R]:
    """Yield the rows that `read(below, count)` brings, newest first, a few at a time: a page may need no more."""
    while rows := read(below, _BATCH):
        yield from rows
        below = key_of(rows[-1])
