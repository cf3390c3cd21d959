"""What gRPC calls answer, bounded: an answer that its client does not take stays in memory, twice, until it does.

A client that opens no window but answers pings could otherwise leave any number of answers, for ever. grpc.aio ends
a call's task, and resumes a stream behind its `yield`, only when the message has gone through the client's window, or
with the connection. So an answer counts from before it is made until then.

Who finds no room waits, in a queue in which the connection that holds least comes first. Only a connection that is in
the way of others is cut off, after `PATIENCE_SECONDS` (docs/adr/0018-an-untaken-answer-costs-its-connection.md).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection
from typing import Final

from gateway.api.grpc.incoming import Context, too_many

MAX_BYTES: Final = 24 * 1024 * 1024
"""How many bytes of answers may be untaken in all. Each lies twice: in Python and in grpc."""

MAX_BYTES_OF_ONE: Final = MAX_BYTES // 2
"""How many of them may be of one token."""

MAX_BYTES_OF_CONNECTION: Final = 4 * 1024 * 1024
"""How many of them may be of one connection: with `PATIENCE_SECONDS`, a client that takes 1 MiB/s is never too slow."""

PATIENCE_SECONDS: Final = 6
"""How long an answer may be untaken while others wait for its room; then its connection is cut off."""

WAIT_SECONDS: Final = 15.0
"""How long an answer may wait for room."""

MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
"""How much those may hold that wait; more, and the newest of the connection that holds most is refused."""

PAGE_BYTES: Final = 3 * 1024 * 1024
"""What a list counts until it is made."""

SMALL_BYTES: Final = 16 * 1024
"""Up to this size an answer waits for none but those of its own connection: honest clients take it at once."""

_SMALL_OF_CONNECTION: Final = 2 * 1024 * 1024
"""How much more a connection may have for these; where all is full, it has this and no more."""

_ALWAYS_OF_ONE: Final = PAGE_BYTES + 1024 * 1024
"""How much a token may have whatever others leave."""

_EXPECTED_BYTES: Final = 64 * 1024
"""What an answer that is no list counts until it is made."""

_REQUEST_BYTES: Final = 64 * 1024
"""What an answer holds that waits to be made."""

_SMALLEST: Final = 4 * 1024
"""What an answer counts at least, for what a call takes itself."""

_log = logging.getLogger(__name__)


class Answer:
    """What one call answers, a message at a time."""

    def __init__(self, outgoing: "Outgoing", owner: str, peer: str, *, waits: bool) -> None:
        self.owner = owner
        self.peer = peer
        self.size = 0
        self.seconds_untaken = 0
        self._outgoing = outgoing
        self._waits = waits

    async def reserve(self, *, page: bool) -> None:
        """Wait for the room of a page, or else for its own connection's, before anything is read.

        Raises RefusedError TOO_MANY.
        """
        await self._grow(_Growth(self, PAGE_BYTES if page else _EXPECTED_BYTES, _REQUEST_BYTES, alone=not page))

    async def leave(self, size: int) -> None:
        """Count a message of this size as untaken from here on, once there is room. Raises RefusedError TOO_MANY."""
        size = max(size, _SMALLEST)
        await self._grow(_Growth(self, size, size, alone=size <= SMALL_BYTES))
        self._outgoing.left(self)

    def taken(self) -> None:
        """Give its room back: the client has taken the message, or the call has ended."""
        self._outgoing.taken(self)

    async def _grow(self, growth: "_Growth") -> None:
        if growth.more > 0 and self._waits and not self._outgoing.fits(growth):
            await self._outgoing.wait(growth)
        self._outgoing.count(self, growth.size)


class _Growth:
    """An answer that is to have `size` bytes, what it `held` until then, and if it waits for its connection `alone`."""

    def __init__(self, answer: Answer, size: int, held: int, *, alone: bool) -> None:
        self.answer = answer
        self.size = size
        self.held = held
        self.alone = alone
        # A message larger than a page waits for the room of a page.
        self.more = min(size, PAGE_BYTES) - answer.size
        self.has_room: asyncio.Future[bool] = asyncio.get_running_loop().create_future()


class Outgoing:
    """Knows all answers that are untaken, and those that wait for room."""

    def __init__(self) -> None:
        self._untaken: dict[Answer, None] = {}
        self._waiting: dict[_Growth, None] = {}
        self._bytes = 0
        self._of_one: Counter[str] = Counter()
        self._of_connection: Counter[str] = Counter()

    def answer(self, owner: str, context: Context, *, waits: bool = True) -> Answer:
        """Begin the answer of a call; it ends with the call."""
        answer = Answer(self, owner, context.peer(), waits=waits)
        context.add_done_callback(lambda _context: answer.taken())  # type: ignore[arg-type]  # its stub is no protocol
        return answer

    def late(self) -> Collection[str]:
        """To be called once a second. Return the connections that have been in the way of others for too long.

        Calls are counted and not the clock's seconds: a gateway that was held up has not given its clients that time.
        """
        for answer in self._untaken:
            answer.seconds_untaken += 1
        everyone = self._bytes > MAX_BYTES or any(self._lacks_room(growth) for growth in self._waiting)
        owners = {growth.answer.owner for growth in self._waiting if self._lacks_share(growth)}
        late = {
            answer.peer
            for answer in self._untaken
            if answer.seconds_untaken >= PATIENCE_SECONDS and (everyone or answer.owner in owners)
        }
        if late:
            _log.warning("connections are cut off that do not take answers for whose room others wait: %d", len(late))
        return late

    def fits(self, growth: _Growth) -> bool:
        """Tell whether there is room. A token always has room for a page, whatever others leave."""
        of_connection = self._of_connection[growth.answer.peer] + growth.more
        if growth.alone:
            usually = MAX_BYTES_OF_CONNECTION if self._bytes <= MAX_BYTES else 0
            return of_connection <= usually + _SMALL_OF_CONNECTION
        if of_connection > MAX_BYTES_OF_CONNECTION:
            return False
        return not self._lacks_share(growth) and not self._lacks_room(growth)

    async def wait(self, growth: _Growth) -> None:
        """Wait for room, which is then counted. Raises RefusedError TOO_MANY."""
        self._waiting[growth] = None
        self._refuse_some()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                has_room = await growth.has_room
        except TimeoutError:
            has_room = False
        finally:
            self._waiting.pop(growth, None)
        if not has_room:
            raise too_many("too many answers are not taken by those who asked for them; come back later")

    def count(self, answer: Answer, size: int) -> None:
        """Count an answer with this size from here on."""
        more, answer.size = size - answer.size, size
        self._bytes += more
        for counter, key in ((self._of_one, answer.owner), (self._of_connection, answer.peer)):
            counter[key] += more
            if not counter[key]:
                del counter[key]
        if more < 0 and self._waiting:
            self._give_turns()

    def left(self, answer: Answer) -> None:
        """Count the seconds of an answer from here on."""
        answer.seconds_untaken = 0
        self._untaken[answer] = None

    def taken(self, answer: Answer) -> None:
        """Count an answer no more."""
        self._untaken.pop(answer, None)
        self.count(answer, 0)

    def _lacks_room(self, growth: _Growth) -> bool:
        of_one = self._of_one[growth.answer.owner] + growth.more
        return not growth.alone and of_one > _ALWAYS_OF_ONE and self._bytes + growth.more > MAX_BYTES

    def _lacks_share(self, growth: _Growth) -> bool:
        return not growth.alone and self._of_one[growth.answer.owner] + growth.more > MAX_BYTES_OF_ONE

    def _give_turns(self) -> None:
        while fitting := [growth for growth in self._waiting if self.fits(growth)]:
            first = min(fitting, key=lambda growth: self._of_connection[growth.answer.peer])
            del self._waiting[first]
            if not first.has_room.done():
                self.count(first.answer, first.size)
                first.has_room.set_result(True)

    def _refuse_some(self) -> None:
        held: Counter[str] = Counter()
        for growth in self._waiting:
            held[growth.answer.peer] += growth.held
        if held.total() > MAX_WAITING_BYTES:
            ((peer, _),) = held.most_common(1)
            newest = next(growth for growth in reversed(self._waiting) if growth.answer.peer == peer)
            del self._waiting[newest]
            if not newest.has_room.done():
                newest.has_room.set_result(False)
