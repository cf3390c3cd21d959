"""What holds back vacuum: as long as a transaction is open, no row that it may still see is taken away."""

from datetime import timedelta

from gateway.store.port import ReadTransaction


def oldest_transaction(tx: ReadTransaction) -> timedelta:
    """Return for how long the oldest transaction of the database has been open, ours apart; zero if there is none.

    Of other roles only what the server shows to this one: all to members of pg_read_all_stats.
    """
    row = tx.one("oldest_transaction")
    return timedelta(microseconds=0 if row is None else max(0, row["age_us"]))
