"""Growing, jittered delays between attempts at something that may be repeated. Never used for writes to the site."""

from worker.clock import Entropy


class Backoff:
    """Delays of about `first`, 2 x `first`, 4 x `first` … up to `most` seconds, each drawn from its upper half."""

    def __init__(self, entropy: Entropy, *, first: float, most: float) -> None:
        self._entropy = entropy
        self._first = first
        self._most = most
        self._next = first

    def delay(self) -> float:
        """Seconds to wait before the next attempt; the one after waits longer."""
        ceiling = min(self._next, self._most)
        self._next = min(self._next * 2, self._most)
        return ceiling * (0.5 + 0.5 * self._entropy.fraction())

    def reset(self) -> None:
        """After a success: starts over with the first delay."""
        self._next = self._first
