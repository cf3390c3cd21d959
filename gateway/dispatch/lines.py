"""Those who wait, in the order in which they came: a line a target, and whoever serves several stands in several."""

from collections.abc import Collection, Iterator, Mapping
from itertools import takewhile
from typing import Generic, TypeVar

from common.target import Target
from gateway.dispatch.lease_source import Request
from gateway.dispatch.waiter import Waiter

R = TypeVar("R", bound=Request)
L = TypeVar("L")


class Lines(Generic[R, L]):
    """Lives in the event loop's thread; others get a snapshot."""

    def __init__(self) -> None:
        self.joined = 0
        """How many have ever joined."""
        self._numbers: dict[Waiter[R, L], int] = {}
        self._lines: dict[Target, dict[Waiter[R, L], None]] = {}

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[Waiter[R, L]]:
        return iter(self._numbers)

    def join(self, waiter: Waiter[R, L]) -> None:
        """Stand at the end of the line of each of its targets."""
        self.joined += 1
        self._numbers[waiter] = self.joined
        for target in waiter.request.targets:
            self._lines.setdefault(target, {})[waiter] = None

    def leave(self, waiter: Waiter[R, L]) -> None:
        """Leave every line, if it stands in any."""
        if self._numbers.pop(waiter, None) is None:
            return
        for target in waiter.request.targets:
            line = self._lines[target]
            del line[waiter]
            if not line:
                del self._lines[target]

    def joined_since(self, joined: int) -> frozenset[Target]:
        """Return the targets of those who wait and have joined since `joined` was so much."""
        late = takewhile(lambda waiter: self._numbers[waiter] > joined, reversed(self._numbers))
        return frozenset(target for waiter in late for target in waiter.request.targets)

    def snapshot(self, targets: Collection[Target] | None) -> Mapping[Target, tuple[Waiter[R, L], ...]]:
        """Return the lines of these targets (None: all) as they are now, without those in which nobody waits."""
        wanted = self._lines if targets is None else self._lines.keys() & targets
        return {target: tuple(self._lines[target]) for target in wanted}
