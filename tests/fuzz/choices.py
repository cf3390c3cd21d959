"""Decisions out of bytes: whatever a fuzzer mutates stays a sequence of decisions, and a shorter one is simpler."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Choices:
    """Reads decisions from `data`; where it is used up, every decision is the first one."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""
        size = max(1, ((limit - 1).bit_length() + 7) // 8)
        number = int.from_bytes(self._data[self._at : self._at + size], "big")
        self._at += size
        return number % limit

    def one_of(self, things: Sequence[T]) -> T:
        """One of the things, the first by default."""
        return things[self.below(len(things))]

    @property
    def used_up(self) -> bool:
        """True if nothing is left to decide by."""
        return self._at >= len(self._data)

    def rest(self) -> bytes:
        """What is left, as it is."""
        left = self._data[self._at :]
        self._at = len(self._data)
        return left
