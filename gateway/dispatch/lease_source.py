"""What a dispatcher hands out, seen from the dispatcher: who asks for it, and four operations of the database."""

from collections.abc import Collection, Hashable, Iterable
from typing import NamedTuple, Protocol, TypeVar

from common.target import Target
from gateway.domain.instant import Instant
from gateway.domain.refusals import Refusal
from gateway.store.port import Transaction


class Request(Protocol):
    """Somebody who waits."""

    @property
    def targets(self) -> tuple[Target, ...]:
        """What the waiter serves; those with the same targets are served in the order in which they came."""
        ...


class Turn(NamedTuple):
    """Which wait of a process it is: `number` counts those of a session from 1; 0: not counted."""

    session: str
    number: int

    def is_before(self, other: "Turn") -> bool:
        """Tell whether the process opened the other one later, whichever was read first."""
        return self.session == other.session and 0 < self.number < other.number


L = TypeVar("L")
R_contra = TypeVar("R_contra", bound=Request, contravariant=True)


class LeaseSource(Protocol[R_contra, L]):
    """What a dispatcher hands out: four operations of the database, in whatever thread it runs them."""

    @property
    def topic(self) -> str:
        """The topic of everything that may let a wait go on."""
        ...

    def waiter_of(self, request: R_contra, /) -> Hashable | None:
        """Name who waits if it waits in one place at a time; None if it may wait in several."""
        ...

    def turn_of(self, request: R_contra, /) -> Turn:
        """Tell which of its waits this is."""
        ...

    def kind_of(self, request: R_contra, /) -> Hashable | None:
        """Name the kind of those for whom there may be nothing although there is for others; None: same for all."""
        ...

    def open(self, tx: Transaction, now: Instant, request: R_contra, /) -> L | Refusal | None:
        """Begin a wait; return what the worker already has, or the next, or None, or why it may not wait."""
        ...

    def ready(self, tx: Transaction, now: Instant, wanted: Collection[Target], /) -> Iterable[Target]:
        """Return those of the wanted targets that may have something to take, the longest waiting first.

        At the price of what is found, not of how many targets there are.
        """
        ...

    def take(self, tx: Transaction, now: Instant, request: R_contra, /) -> L | None:
        """Take the next for a worker that waits, or return None."""
        ...

    def release(self, tx: Transaction, now: Instant, request: R_contra, lease: L, /) -> object:
        """Undo what was taken for a worker that has gone, unless it is not that any more."""
        ...
