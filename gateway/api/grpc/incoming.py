"""The request of a gRPC call, read by the gateway itself, so that who calls is known before anything is waited for.

Handlers are registered as taking a stream of requests, whatever the contract says: grpc.aio calls those at once, and
those of a single request only when it has come, which a client that never sends it can put off for ever.

grpc takes up to the largest message of a call as soon as somebody reads, however little of it is announced to belong
to this method, and until then what fits the stream's window (`UNREAD_WINDOW_BYTES`). So what bounds the bytes on their
way is how many calls are read at once.
"""

import asyncio
import contextlib
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import Any, Final, Self, TypeAlias

import grpc

from gateway.api.offload import LARGE_BYTES
from gateway.domain.refusals import Reason, Refusal, RefusedError, invalid

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""The largest request taken, whatever the settings say of single texts."""

REQUEST_SECONDS: Final = 30.0
"""How long a client may take to send its request, as over HTTP."""

UNREAD_WINDOW_BYTES: Final = 16 * 1024
"""How much of a request a client may send before it is read; grpc adds more by itself only where it is allowed to."""

MAX_READ: Final = 32
"""How many requests may be read at once, those being served that are large; each up to the largest message."""

MAX_READ_OF_ONE: Final = 16
"""How many of them may be of one token."""

PATIENCE_SECONDS: Final = 1.0
"""How long a request may be on its way while others wait for its place."""


class Places:
    """Bounds how many calls do something at once; a context holds a place. Who finds none is refused, not kept waiting.

    A class and not a generator, as everything here that each call goes through: that costs a fifth of the time.
    """

    def __init__(self, most: int, doing: str) -> None:
        """`doing` completes the sentence "256 calls are …"."""
        self._most = most
        self._doing = doing
        self._taken = 0

    def __enter__(self) -> None:
        """Take a place. Raises RefusedError TOO_MANY if all are taken."""
        if self._taken >= self._most:
            why = f"{self._most:,} calls are {self._doing}, which is the limit; come back later"
            raise too_many(why)
        self._taken += 1

    def __exit__(self, *_error: object) -> None:
        """Give it back."""
        self._taken -= 1


def too_many(why: str) -> RefusedError:
    """Make the refusal of what is too much just now."""
    return RefusedError(Refusal(Reason.TOO_MANY, why, retry_after=timedelta(seconds=1)))


class _Reading:
    """A request on its way, which may be broken off."""

    __slots__ = ("_begun", "_loop", "_timeout", "broken_off", "owner")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.broken_off = False
        self._loop = asyncio.get_running_loop()
        self._begun = self._loop.time()
        # Without a timer of its own, which costs each call a hundredth: `end_if_late` sets it.
        self._timeout = asyncio.timeout(None)

    async def read(self, context: Context) -> bytes | None:
        """Return the request; None where the client sends no more. Raises RefusedError."""
        try:
            async with self._timeout:
                data = await context.read()
        except TimeoutError:
            if self.broken_off:
                raise too_many("more requests are on their way than are taken at once; send it again") from None
            raise invalid("request", f"it did not come within {REQUEST_SECONDS:g} seconds") from None
        return data if isinstance(data, bytes) else None

    def hurry(self, patience: float) -> None:
        """Break it off once it has been on its way for so many seconds."""
        self.broken_off = True
        self._timeout.reschedule(max(self._loop.time(), self._begun + patience))

    def end_if_late(self) -> bool:
        """End it if it has taken longer than a request may; tell whether it has."""
        late = self._loop.time() - self._begun >= REQUEST_SECONDS
        if late and not self.broken_off:
            self._timeout.reschedule(self._loop.time())
        return late


def _end_the_late(reading: Iterable[_Reading]) -> None:
    """End what takes longer than a request may; what began first comes first."""
    for each in reading:
        if not each.end_if_late():
            return


class Gate:
    """So many places; who finds none free waits for one, in turn.

    In place of asyncio's semaphore, which each call would ask seven things in Python.
    """

    __slots__ = ("_waiting", "free")

    def __init__(self, places: int) -> None:
        self.free = places
        """Places that can be taken at once, by counting them down. Nobody waits where there are any."""
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def enter(self) -> None:
        """Take a place, which may have to be waited for."""
        if self.free:
            self.free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.leave()
            else:
                with contextlib.suppress(ValueError):  # whoever left just now has passed it over
                    self._waiting.remove(turn)
            raise

    def leave(self) -> None:
        """Give a place back, to whoever has waited for longest."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.cancelled():
                turn.set_result(None)
                return
        self.free += 1


class Intake:
    """Bounds how many requests are read at once, in all and of one owner.

    Who finds no place waits for one, in turn, and the request that has been on its way for longest is broken off.
    """

    def __init__(self, most: int = MAX_READ, of_one: int = MAX_READ_OF_ONE) -> None:
        self._all = Gate(most)
        self._of_one: defaultdict[str, Gate] = defaultdict(lambda: Gate(of_one))
        self._reading: dict[_Reading, None] = {}

    def place(self, owner: str) -> "Place":
        """Return a context in which an owner's requests are read; its place is given back at its end at the latest."""
        return Place(self, owner)

    async def requests(self, context: Context, owner: str) -> AsyncIterator[bytes]:
        """Yield the bytes of each request until the client sends no more. Raises RefusedError."""
        while True:
            with self.place(owner) as place:
                data = await place.read(context)
            if data is None:
                return
            yield data

    def enter_at_once(self, owner: str) -> bool:
        """Take a place if one is free."""
        own = self._of_one[owner]
        if not own.free or not self._all.free:
            return False
        own.free -= 1
        self._all.free -= 1
        return True

    async def enter(self, owner: str) -> None:
        """Wait for a place."""
        own = self._of_one[owner]
        if not own.free:
            self._hurry_the_oldest(owner)
        await own.enter()
        try:
            if not self._all.free:
                self._hurry_the_oldest(None)
            await self._all.enter()
        except BaseException:
            own.leave()
            raise

    def leave(self, owner: str) -> None:
        """Give a place back."""
        self._of_one[owner].leave()
        self._all.leave()

    async def read(self, context: Context, owner: str) -> bytes | None:
        """Read for somebody who has a place. Raises RefusedError INVALID_FIELD or TOO_MANY."""
        reading = _Reading(owner)
        self._reading[reading] = None
        try:
            return await reading.read(context)
        finally:
            del self._reading[reading]

    def end_the_late(self) -> None:
        """To be called once a second: end the requests that take longer than `REQUEST_SECONDS`."""
        _end_the_late(self._reading)

    def _hurry_the_oldest(self, owner: str | None) -> None:
        for reading in self._reading:
            if not reading.broken_off and owner in (None, reading.owner):
                reading.hurry(PATIENCE_SECONDS)
                return


class Place:
    """A place among those whose requests are read."""

    __slots__ = ("_intake", "_is_held", "_owner")

    def __init__(self, intake: Intake, owner: str) -> None:
        self._intake = intake
        self._owner = owner
        self._is_held = False

    def __enter__(self) -> Self:
        """Begin; the place itself is taken by what is read."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Give the place back."""
        if self._is_held:
            self._release()

    async def request(self, context: Context) -> bytes:
        """Read a call's one request. A large one keeps its place until the end, as it is still held.

        Raises RefusedError INVALID_FIELD if it does not come, TOO_MANY if it is broken off.
        """
        data = await self.read(context)
        if data is None:
            raise invalid("request", "the call ended without one")
        if len(data) <= LARGE_BYTES:
            self._release()
        return data

    async def read(self, context: Context) -> bytes | None:
        """Read a request; None where the client sends no more. Raises RefusedError."""
        if not self._intake.enter_at_once(self._owner):
            await self._intake.enter(self._owner)
        self._is_held = True
        return await self._intake.read(context, self._owner)

    def _release(self) -> None:
        self._is_held = False
        self._intake.leave(self._owner)


class StrangersIntake:
    """Reads the requests of those who show no token. The newest always finds a place, and the oldest loses its own.

    An honest request comes with its headers, so it is there when it is read; only those that stop on their way stay.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._reading: dict[_Reading, None] = {}

    def end_the_late(self) -> None:
        """To be called once a second: end the requests that take longer than `REQUEST_SECONDS`."""
        _end_the_late(self._reading)

    async def read(self, context: Context) -> bytes:
        """Return a call's one request. Raises RefusedError INVALID_FIELD or TOO_MANY."""
        if len(self._reading) >= self._most:
            oldest = next(iter(self._reading))
            del self._reading[oldest]
            oldest.hurry(0)
        reading = _Reading("")
        self._reading[reading] = None
        try:
            data = await reading.read(context)
        finally:
            self._reading.pop(reading, None)
        if data is None:
            raise invalid("request", "the call ended without one")
        return data
