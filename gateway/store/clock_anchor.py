"""Where the service clock stood when it was last written down."""

from dataclasses import dataclass

from gateway.store.port import ReadTransaction, Transaction


@dataclass(frozen=True, slots=True)
class ClockAnchor:
    """The boot, the microseconds since it, the service clock at that time (microseconds), and the wall clock's text."""

    boot_id: str
    boot_us: int
    elapsed_us: int
    utc: str


def find(tx: ReadTransaction) -> ClockAnchor | None:
    """Return the anchor; None in a new database."""
    row = tx.one("clock_anchor_get")
    return None if row is None else ClockAnchor(row["boot_id"], row["boot_us"], row["elapsed_us"], row["utc"])


def write(tx: Transaction, anchor: ClockAnchor) -> None:
    """Write the anchor down in place of the former one."""
    tx.change_one(
        "clock_anchor_set",
        boot_id=anchor.boot_id,
        boot_us=anchor.boot_us,
        elapsed_us=anchor.elapsed_us,
        utc=anchor.utc,
    )
