"""The door that every transport has: who calls, may they, are they too many (docs/specification.md#access)."""

import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from datetime import timedelta
from typing import Final

from gateway.api.auth.access import ACCESS
from gateway.api.auth.authenticator import Authenticator, Identity, Role, require
from gateway.api.auth.pages import Pages
from gateway.api.call import Call
from gateway.domain.refusals import Reason, Refusal, RefusedError

DEFAULT_MAX_WAITERS: Final = 10_000

_SHARE: Final = 0.75
"""How much of all places one token may take, and all who watch; the rest is for others, and for workers."""

_WORKERS: Final = frozenset({Role.WORKER})

_LISTS: Final = "List"
"""How the names of the methods begin that answer a page of a list."""

_NO_TURN: Final = nullcontext()

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

ON_KNOWN: Final = "on_known"
"""Key in a request's state: what is to be called when its client has shown a token."""


class Admission:
    """Lets calls in.

    `max_waiters` bounds the streams and long polls open at once, `calls_per_second` the calls of one token (0: no
    limit), of which one second's worth may come at once. `clock` counts seconds. `current_trace` tells the running span
    as a W3C traceparent, "" where traces are off: then the caller's own is passed on.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        *,
        max_waiters: int = DEFAULT_MAX_WAITERS,
        calls_per_second: float = 0,
        clock: Callable[[], float] = time.monotonic,
        current_trace: Callable[[], str] = lambda: "",
    ) -> None:
        self._authenticator = authenticator
        self._max_waiters = max_waiters
        self._share = math.ceil(max_waiters * _SHARE)
        self._waiters = self._watchers = 0
        self._waiters_of: Counter[str] = Counter()
        self._pages = Pages()
        self._rate = calls_per_second
        self._buckets: dict[str, _Bucket] = {}
        self._clock = clock
        self._current_trace = current_trace

    @property
    def is_open(self) -> bool:
        """True if no token is configured, so that everybody on this machine is let in."""
        return self._authenticator.is_open

    @property
    def waiters(self) -> int:
        """How many streams and long polls are open."""
        return self._waiters

    def knows(self, authorization: bytes | None) -> bool:
        """Tell whether an `Authorization` value holds a valid token, without counting it as a call."""
        try:
            self._authenticator.identify(None if authorization is None else authorization.decode("latin-1"))
        except RefusedError:
            return False
        return True

    def identify(self, authorization: str | None) -> Identity:
        """Return who sent this `Authorization` value. Raises RefusedError UNAUTHENTICATED or TOO_MANY."""
        identity = self._authenticator.identify(authorization)
        self._count(identity)
        return identity

    def owner(self, made_with: Callable[[bytes], bool]) -> Identity | None:
        """Return whose token a session was made with, None if nobody's."""
        return self._authenticator.owner(made_with)

    def count(self, identity: Identity) -> None:
        """Count a request of somebody who was let in by other means than a token. Raises RefusedError TOO_MANY."""
        self._count(identity)

    def admit(self, path: str, authorization: str | None, traceparent: str | None) -> Call:
        """Let a caller of the contract's method `path` in. Unknown methods let nobody in.

        Raises RefusedError UNAUTHENTICATED, PERMISSION_DENIED or TOO_MANY.
        """
        return self.call(self.identify(authorization), path, traceparent)

    def call(self, identity: Identity, path: str, traceparent: str | None = None) -> Call:
        """Let somebody who is known call the contract's method `path`. Raises RefusedError PERMISSION_DENIED."""
        roles = ACCESS.get(path, frozenset())
        method = path.rpartition("/")[2]
        require(identity, roles, method)
        told = traceparent if traceparent and _TRACEPARENT.fullmatch(traceparent) else ""
        of_workers, lists = roles == _WORKERS, method.startswith(_LISTS)
        return Call(identity, self._current_trace() or told, of_workers=of_workers, lists=lists)

    def turn(self, call: Call) -> AbstractAsyncContextManager[None]:
        """Return a context that waits for the turn of a call that answers a list, and holds it; others go on at once.

        Raises RefusedError TOO_MANY if it does not come.
        """
        return self._pages.place(call.identity.name) if call.lists else _NO_TURN

    @contextmanager
    def waiting(self, call: Call) -> Iterator[None]:
        """Hold a place among those who wait. Raises RefusedError TOO_MANY if there is none for this call.

        No token gets all places, and some are kept for workers: whoever watches can not keep an order from being taken.
        """
        name = call.identity.name
        if self._waiters >= self._max_waiters:
            raise _no_place(f"{self._max_waiters:,} streams and long polls are open, which is the limit")
        if self._waiters_of[name] >= self._share:
            raise _no_place(
                f"{self._share:,} streams and long polls of {name} are open, which is the limit for one token"
            )
        if not call.of_workers and self._watchers >= self._share:
            raise _no_place(f"{self._share:,} watches are open, which is the limit; the rest is kept for workers")
        self._waiters += 1
        self._waiters_of[name] += 1
        self._watchers += not call.of_workers
        try:
            yield
        finally:
            self._waiters -= 1
            self._waiters_of[name] -= 1
            self._watchers -= not call.of_workers

    def _count(self, identity: Identity) -> None:
        if not self._rate:
            return
        now = self._clock()
        bucket = self._buckets.setdefault(identity.name, _Bucket(max(self._rate, 1.0), now))
        short_by = bucket.take(self._rate, now)
        if short_by > 0:
            raise RefusedError(
                Refusal(
                    Reason.TOO_MANY,
                    f"{identity.name} calls more than {self._rate:g} times a second",
                    retry_after=timedelta(seconds=short_by),
                )
            )


def _no_place(why: str) -> RefusedError:
    return RefusedError(Refusal(Reason.TOO_MANY, f"{why}; come back later", retry_after=timedelta(seconds=5)))


class _Bucket:
    """A token bucket of one caller. There are as many as configured tokens."""

    __slots__ = ("_at", "_left", "_size")

    def __init__(self, size: float, now: float) -> None:
        self._size = self._left = size
        self._at = now

    def take(self, rate: float, now: float) -> float:
        """Take one call out; return 0, or the seconds until there is one."""
        self._left = min(self._size, self._left + (now - self._at) * rate)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / rate
        self._left -= 1
        return 0
