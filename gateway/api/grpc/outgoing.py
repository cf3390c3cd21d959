"""What gRPC calls answer, bounded: an answer that its client does not take stays in memory, twice, until it does.

A client that opens no window but answers pings could otherwise leave any number, for ever. grpc.aio ends a call's task,
and resumes a stream behind its `yield`, only when the message has gone through the client's window, or with the
connection. So an answer counts from before it is made until then.

Who finds no room waits; the connection that holds least comes first. Only a connection that is in the way of others is
cut off, after `PATIENCE_SECONDS` (docs/adr/0018-an-untaken-answer-costs-its-connection.md).
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

WAIT_SECONDS: Final = 30.0
"""How long an answer may wait for room."""

MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
"""How much may be made and wait; more, and the newest of the connection that has most is refused."""

PAGE_BYTES: Final = 3 * 1024 * 1024
"""What a list counts until it is made."""

SMALL_BYTES: Final = 16 * 1024
"""Up to this size an answer waits for its own connection's alone: honest clients take it at once."""

_SMALL_OF_CONNECTION: Final = 2 * 1024 * 1024
"""How much more than `MAX_BYTES_OF_CONNECTION` a connection may have for these."""

_LITTLE_OF_CONNECTION: Final = 512 * 1024
"""How much a connection may have in all for these where its token, or everybody, has no room left."""

_ALWAYS_OF_ONE: Final = PAGE_BYTES + 1024 * 1024
"""How much a token may have whatever others leave."""

_EXPECTED_BYTES: Final = 256 * 1024
"""What an answer that is no list counts until it is made: as much as an intent may have."""

_SMALLEST: Final = 4 * 1024
"""What an answer counts at least, for what a call takes itself."""

_log = logging.getLogger(__name__)


class Answer:
    """What one call answers, a message at a time."""

    __slots__ = ("_outgoing", "_waits", "owner", "peer", "seconds_untaken", "shared", "size")

    def __init__(self, outgoing: "Outgoing", owner: str, peer: str, *, waits: bool) -> None:
        self.owner = owner
        self.peer = peer
        self.size = self.shared = 0
        self.seconds_untaken = 0
        self._outgoing = outgoing
        self._waits = waits

    async def reserve(self, *, page: bool) -> None:
        """Wait for the room of a page, or else for its own connection's, before anything is read.

        Raises RefusedError TOO_MANY.
        """
        await self._grow(_Growth(self, PAGE_BYTES if page else _EXPECTED_BYTES, held=0, alone=not page))

    async def leave(self, boxed: list[bytes]) -> None:
        """Count a message as untaken from here on, once there is room. Empties the box if not: RefusedError TOO_MANY.

        What is raised has a traceback with the caller's variables, which grpc's context keeps until a collection.
        """
        size = max(len(boxed[0]), _SMALLEST)
        if size <= SMALL_BYTES and self._outgoing.has_little(self.peer, size - self.size):
            self._outgoing.count(self, size, size)
        else:
            try:
                await self._grow(_Growth(self, size, held=size, alone=size <= SMALL_BYTES))
            except BaseException:
                boxed.clear()
                raise
        self._outgoing.left(self)

    def taken(self, _context: object = None) -> None:
        """Give its room back: the client has taken the message, or the call has ended."""
        self._outgoing.taken(self)

    async def _grow(self, growth: "_Growth") -> None:
        if self._waits and (growth.more > 0 or growth.more_shared > 0) and not self._outgoing.fits(growth):
            await self._outgoing.wait(growth)
        self._outgoing.count(self, growth.size, growth.shared)


class _Growth:
    """An answer that is to have `size` bytes, what it `held` until then, and if it waits for its connection `alone`."""

    __slots__ = ("alone", "answer", "held", "more", "more_shared", "queue", "shared", "size")

    def __init__(self, answer: Answer, size: int, *, held: int, alone: bool) -> None:
        self.answer = answer
        self.size = size
        self.held = held
        self.alone = alone
        self.queue = answer.peer, held > 0
        # A message larger than a page waits for the room of a page.
        self.more = min(size, PAGE_BYTES) - answer.size
        # What only its connection must have room for counts for others when it is made.
        self.shared = 0 if alone and not held else size
        self.more_shared = min(self.shared, PAGE_BYTES) - answer.shared


class Outgoing:
    """Knows all answers that are untaken, and those that wait for room."""

    def __init__(self) -> None:
        self._untaken: dict[Answer, None] = {}
        self._waiting: dict[tuple[str, bool], dict[_Growth, asyncio.Future[bool]]] = {}
        self._held: Counter[str] = Counter()
        # No counters: those call Python for whoever is not in them, which is most calls' lot.
        self._made: dict[str, int] = {}
        self._bytes = 0
        self._of_one: dict[str, int] = {}
        self._of_connection: dict[str, int] = {}

    def answer(self, owner: str, context: Context, *, waits: bool = True) -> Answer:
        """Begin the answer of a call; it ends with the call."""
        answer = Answer(self, owner, context.peer(), waits=waits)
        context.add_done_callback(answer.taken)  # type: ignore[arg-type]  # its stub is no protocol
        return answer

    def late(self) -> Collection[str]:
        """To be called once a second. Return the connections that have been in the way of others for too long.

        Calls count, not the clock's seconds: a gateway that was held up has not given its clients that time.
        """
        for answer in self._untaken:
            answer.seconds_untaken += 1
        waiting = [growth for queue in self._waiting.values() for growth in queue]
        everyone = self._bytes > MAX_BYTES or any(self._lacks_room(growth) for growth in waiting)
        owners = {growth.answer.owner for growth in waiting if self._lacks_share(growth)}
        late = {
            answer.peer
            for answer in self._untaken
            if answer.seconds_untaken >= PATIENCE_SECONDS and (everyone or answer.owner in owners)
        }
        if late:
            _log.warning("connections are cut off that do not take answers for whose room others wait: %d", len(late))
        return late

    def has_little(self, peer: str, more: int) -> bool:
        """Tell whether a connection has so little, with so much more, that a small answer fits whatever else waits."""
        return self._of_connection.get(peer, 0) + more <= _LITTLE_OF_CONNECTION

    def fits(self, growth: _Growth) -> bool:
        """Tell whether there is room. A token always has room for a page, whatever others leave."""
        return self._connection_has_room(growth) and not self._lacks_share(growth) and not self._lacks_room(growth)

    async def wait(self, growth: _Growth) -> None:
        """Wait for room, which is then counted. Raises RefusedError TOO_MANY."""
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(growth.queue, {})[growth] = turn
        _add(self._held, growth.answer.peer, growth.held)
        _add(self._made, growth.answer.owner, growth.held)
        if self._held.total() > MAX_WAITING_BYTES:
            self._refuse_one()
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                has_room = await turn
        except TimeoutError:
            has_room = False
        finally:
            self._wait_no_more(growth)
        if not has_room:
            raise too_many("too many answers are not taken by those who asked for them; come back later")

    def count(self, answer: Answer, size: int, shared: int) -> None:
        """Count an answer with this size from here on, and so much of it for its token and in all."""
        more, more_shared = size - answer.size, shared - answer.shared
        answer.size, answer.shared = size, shared
        if more_shared:
            self._bytes += more_shared
            _add(self._of_one, answer.owner, more_shared)
        if more:
            _add(self._of_connection, answer.peer, more)
        if (more < 0 or more_shared < 0) and self._waiting:
            self._give_turns()

    def left(self, answer: Answer) -> None:
        """Count the seconds of an answer from here on."""
        answer.seconds_untaken = 0
        self._untaken[answer] = None

    def taken(self, answer: Answer) -> None:
        """Count an answer no more."""
        self._untaken.pop(answer, None)
        self.count(answer, 0, 0)

    def _connection_has_room(self, growth: _Growth) -> bool:
        most = MAX_BYTES_OF_CONNECTION
        if growth.alone:
            owner = growth.answer.owner
            is_full = self._bytes > MAX_BYTES or self._of_one.get(owner, 0) > MAX_BYTES_OF_ONE
            is_full |= not growth.held and self._made.get(owner, 0) > 0
            most = _LITTLE_OF_CONNECTION if is_full else most + _SMALL_OF_CONNECTION
        return growth.more <= 0 or self._of_connection.get(growth.answer.peer, 0) + growth.more <= most

    def _lacks_room(self, growth: _Growth) -> bool:
        has_its_own = self._of_one.get(growth.answer.owner, 0) + growth.more_shared <= _ALWAYS_OF_ONE
        return not growth.alone and not has_its_own and self._bytes + growth.more_shared > MAX_BYTES

    def _lacks_share(self, growth: _Growth) -> bool:
        return not growth.alone and self._of_one.get(growth.answer.owner, 0) + growth.more_shared > MAX_BYTES_OF_ONE

    def _give_turns(self) -> None:
        while (growth := self._next()) is not None:
            turn = self._wait_no_more(growth)
            if turn is not None and not turn.done():
                self.count(growth.answer, growth.size, growth.shared)
                turn.set_result(True)

    def _next(self) -> _Growth | None:
        """Return whose turn it is: of each token the first whose own connection has room, or none until it fits."""
        firsts = [first for first in map(next, map(iter, self._waiting.values())) if self._connection_has_room(first)]
        # Of one connection what is made comes first: it frees memory when it goes.
        firsts.sort(key=lambda first: (self._of_connection.get(first.answer.peer, 0), not first.held))
        of_each = {first.answer.owner: first for first in reversed(firsts) if not first.alone}
        return next(filter(self.fits, (*(first for first in firsts if first.alone), *of_each.values())), None)

    def _wait_no_more(self, growth: _Growth) -> asyncio.Future[bool] | None:
        queue = self._waiting.get(growth.queue, {})
        turn = queue.pop(growth, None)
        if turn is not None:
            _add(self._held, growth.answer.peer, -growth.held)
            _add(self._made, growth.answer.owner, -growth.held)
            if not queue:
                del self._waiting[growth.queue]
        return turn

    def _refuse_one(self) -> None:
        ((most, _),) = self._held.most_common(1)
        growth = next(reversed(self._waiting[most, True]))
        turn = self._wait_no_more(growth)
        if turn is not None and not turn.done():
            turn.set_result(False)


def _add(counted: dict[str, int], key: str, more: int) -> None:
    counted[key] = count = counted.get(key, 0) + more
    if not count:
        del counted[key]
