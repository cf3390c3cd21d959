"""The service clock of one gateway among several: what it reads in each transaction, by the rules of shared_clock."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from gateway.domain.instant import Instant, utc_text
from gateway.store.port import Row, Transaction
from gateway.store.postgres.session import Session
from gateway.store.postgres.shared_clock import NewestGroup, Reading, is_vouched, judge

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Machine:
    """The clocks of the machine that a gateway runs on.

    `boot_us` counts microseconds since the boot that `boot_id` names. `database_us` is given what the database's clock
    reads, in microseconds since 1970, and returns it; a test or a simulation returns its own.
    """

    boot_id: str
    boot_us: Callable[[], int]
    database_us: Callable[[int], int] = lambda read: read


@dataclass(frozen=True, slots=True)
class Moment:
    """What one look at the database told: the time as rules see it, and what it was made of."""

    instant: Instant
    database_us: int
    reading: Reading


class SharedServiceClock:
    """Judges the time of each transaction. `continues`: whether somebody could vouch for it at the start.

    Its transactions' rows keep it, so there is nothing to write down besides.
    """

    def __init__(self, machine: Machine, *, continues: bool, own: Reading | None, floor_us: int = 0) -> None:
        """`own`: the last reading of a former process of this boot. Time is `floor_us` at least."""
        self.machine = machine
        self.continues = continues
        self.moved_ahead_us = 0
        self._own = own
        self._floor_us = floor_us
        self._wall = (0, machine.boot_us())

    def look(self, row: Row, sent_us: int) -> Moment:
        """Judge the time by the row of `group_open`, asked for at `sent_us` of the boot clock."""
        received_us = self.machine.boot_us()
        database_us = self.machine.database_us(row["now_us"])
        self._wall = (database_us, received_us)
        newest = newest_of(row)
        if newest is None:
            elapsed_us, last_utc = 0, ""
        else:
            elapsed_us = judge(newest, database_us, self._own, sent_us, received_us)
            last_utc = newest.utc
        # More than 0 only until the first group is written, which stands at the floor or later.
        self.moved_ahead_us = max(self.moved_ahead_us, self._floor_us - elapsed_us)
        elapsed_us = max(elapsed_us, self._floor_us)
        utc = max(last_utc, utc_of(database_us))
        return Moment(Instant(utc, elapsed_us), database_us, Reading(elapsed_us, sent_us, received_us))

    def committed(self, moment: Moment) -> None:
        """Go on from a moment whose row is committed."""
        self._own = moment.reading

    def wall_utc(self) -> str:
        """Return the database's clock as it is, even if it has gone back: as last read, carried on."""
        read_us, at_us = self._wall
        return utc_of(read_us + self.machine.boot_us() - at_us)

    def save(self, tx: Transaction, now: Instant) -> None:
        """Write nothing: every transaction writes down where the clock stands."""


def newest_of(row: Row) -> NewestGroup | None:
    """Return the newest group of a row of `group_open`; None in a new database."""
    if row["number"] is None:
        return None
    return NewestGroup(row["elapsed_us"], row["database_us"], row["utc"])


def load_shared_clock(session: Session, machine: Machine, wait: Callable[[], bool]) -> SharedServiceClock:
    """Return the clock of a gateway that starts: it goes on from its own boot's reading, or from a living gateway's.

    Where there is neither, `wait` is called, which pauses and tells whether another look is worth it; in the end the
    database's clock judges alone, and the clock goes on no earlier than anything that an open lease has seen: an age is
    never negative, and a permit never becomes longer. Raises psycopg.Error.
    """
    reading = _first(session, "group_last_of_boot", boot_id=machine.boot_id)
    if reading is not None:
        at = reading["boot_us"]
        clock = SharedServiceClock(machine, continues=True, own=Reading(reading["elapsed_us"], at, at))
        _set_wall(clock, session)
        return clock
    while True:
        row = _first(session, "group_open")
        newest = None if row is None else newest_of(row)
        if row is None or newest is None or is_vouched(newest, machine.database_us(row["now_us"])) or not wait():
            break
    vouched = row is None or newest is None or is_vouched(newest, machine.database_us(row["now_us"]))
    floor = None if vouched else _first(session, "leases_open_latest")
    clock = SharedServiceClock(
        machine, continues=vouched, own=None, floor_us=0 if floor is None else floor["latest_us"]
    )
    _set_wall(clock, session)
    return clock


def utc_of(us: int) -> str:
    """Write microseconds since 1970 as fixed-width UTC text."""
    return utc_text(_EPOCH + timedelta(microseconds=us))


def _set_wall(clock: SharedServiceClock, session: Session) -> None:
    row = _first(session, "group_open")
    if row is not None:
        clock.look(row, clock.machine.boot_us())


def _first(session: Session, name: str, **parameters: str) -> Row | None:
    rows = session.rows(session.send(name, parameters), 1)
    return rows[0] if rows else None
