"""How a group of operations begins and ends in the database: the writer's lock, the clock, the row that proves it."""

import uuid
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from gateway.store.port import LOCAL_TOPIC, DatabaseUnusableError
from gateway.store.postgres.failures import ConnectionLostError
from gateway.store.postgres.schema import program, too_old
from gateway.store.postgres.service_clock import Moment, SharedServiceClock
from gateway.store.postgres.session import Session

T = TypeVar("T")

LARGEST_PAYLOAD: Final = 7_900
"""What a notification may hold, in bytes; PostgreSQL allows 7,999."""

EVERYTHING: Final = "*"
"""In place of more topics than a notification holds."""

_COMMIT_WITHOUT_STANDBY: Final = "01000"


class GroupLog:
    """Opens and closes the groups of one gateway."""

    def __init__(self, clock: SharedServiceClock, gateway_id: str) -> None:
        self.clock = clock
        self._gateway_id = gateway_id

    def new_id(self) -> str:
        """Return what a group will be known by: chance alone, so that nobody else's can be taken for it."""
        return uuid.uuid4().hex

    def open(self, session: Session) -> Moment:
        """Begin a transaction and wait for the writer's lock; one round trip.

        Raises DatabaseUnusableError if a migration has shut this program out meanwhile, psycopg.Error.
        """
        session.warnings.clear()
        sent_us = self.clock.machine.boot_us()
        # READ COMMITTED, whatever the server's default: in a stricter level the statement that waits for the lock has
        # taken its snapshot before, and all that follow would read what is old by then.
        session.command("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        session.send("writer_lock", {})
        row = session.rows(session.send("group_open", {}))[0]
        if row["oldest_program"] > program():
            raise DatabaseUnusableError(too_old(row["oldest_program"]))
        return self.clock.look(row, sent_us)

    def close(self, session: Session, group_id: str, moment: Moment, topics: Iterable[str]) -> None:
        """Write the group down and tell other gateways of its topics; sent, not waited for."""
        session.send(
            "group_close",
            {
                "group_id": group_id,
                "gateway_id": self._gateway_id,
                "utc": moment.instant.utc,
                "elapsed_us": moment.instant.elapsed_us,
                "database_us": moment.database_us,
                "boot_id": self.clock.machine.boot_id,
                "boot_us": moment.reading.received_us,
            },
        )
        told = [topic for topic in sorted(topics) if not topic.startswith(LOCAL_TOPIC)]
        if told:
            session.send("group_notify", {"payload": payload(self._gateway_id, told)})

    def commit(self, session: Session) -> None:
        """Commit, and wait until it is durable. Raises psycopg.Error; ConnectionLostError: nobody knows yet."""
        reply = session.command("COMMIT")
        session.settle()
        status = None if reply.result is None else reply.result.command_status
        if status != b"COMMIT":
            raise ConnectionLostError(f"the transaction ended with {status!r} instead of a commit")
        if _COMMIT_WITHOUT_STANDBY in session.warnings:
            raise ConnectionLostError("the wait for the standby was broken off")

    def knows(self, session: Session, group_id: str) -> bool:
        """Tell whether a group is there. Raises psycopg.Error."""
        return bool(session.rows(session.send("group_get", {"group_id": group_id})))

    def alone(self, session: Session, run: Callable[[Session], T]) -> T:
        """Commit a group of its own, of which nobody is told, and return what `run` did. Raises as the others do."""
        moment = self.open(session)
        result = run(session)
        self.close(session, self.new_id(), moment, ())
        self.commit(session)
        self.clock.committed(moment)
        return result


def payload(gateway_id: str, topics: list[str]) -> str:
    """Return what a notification says: who tells it, then a topic a line."""
    text = "\n".join([gateway_id, *topics])
    return text if len(text.encode()) <= LARGEST_PAYLOAD else f"{gateway_id}\n{EVERYTHING}"


def read_payload(text: str) -> tuple[str, list[str]]:
    """Return the gateway and the topics of a notification."""
    gateway_id, *topics = text.split("\n")
    return gateway_id, topics
