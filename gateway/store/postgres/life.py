"""Which database this is, and whether it is still the one that was last written.

Why: docs/adr/0022-a-restore-is-recognised.md.

One row says to which cluster, database and timeline it belongs, and which transaction wrote it: a row that a restored
dump has inserted was written by another one than it says.
"""

from enum import StrEnum

from gateway.store.port import ReadTransaction, Transaction


class Change(StrEnum):
    """What a database has become since its row was written. The words are for people."""

    GONE_BACK = "a database that lacks what it had acknowledged"
    OTHER_SERVER = "a copy of the database of another server"
    CLONE = "a clone of another database"
    DUMP = "a dump"
    OTHER_TIMELINE = "a point in time, or a standby that was promoted"


def recognise(tx: ReadTransaction) -> Change | None:
    """Return what the database has become, None if it is the one it was, or is new."""
    here, written = tx.one("life_now"), tx.one("life_written")
    if here is None:
        raise LookupError("the server does not tell which one it is")
    if written is None:
        return None if tx.one("life_is_new") is not None else Change.GONE_BACK
    if written["written_by"] != written["really_written_by"]:
        return Change.DUMP
    if written["system_identifier"] != here["system_identifier"]:
        return Change.OTHER_SERVER
    if written["database_oid"] not in ("", here["database_oid"]):
        return Change.CLONE
    if written["timeline"] != here["timeline"]:
        return Change.OTHER_TIMELINE
    return None


def claim(tx: Transaction) -> None:
    """Write down which database this is. Not inside a savepoint, whose transaction is another one than is written."""
    here = tx.one("life_now")
    if here is None:
        raise LookupError("the server does not tell which one it is")
    tx.insert(
        "life_write",
        system_identifier=here["system_identifier"],
        database_oid=here["database_oid"],
        timeline=here["timeline"],
    )


def forget(tx: Transaction) -> None:
    """Let whoever starts next see that the database lacks something, and treat it as one that was put back."""
    tx.change_any("life_forget")
