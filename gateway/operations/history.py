"""Reading the history: every change and every refusal worth knowing (docs/specification.md#history)."""

from collections.abc import Sequence
from typing import Final

from gateway.domain.instant import Instant
from gateway.domain.operations import HistoryEvent, HistoryFilter
from gateway.domain.paging import Page, fill, in_batches
from gateway.store import history
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction

_SIZE_WITHOUT_TEXTS: Final = 1_000


def list_events(
    tx: ReadTransaction, _now: Instant, wanted: HistoryFilter, below: int | None, count: int
) -> Page[HistoryEvent, int]:
    """Return up to `count` events with numbers smaller than `below` (None: from the newest), newest first.

    Fewer where they are large, but at least one.
    """
    end = ABOVE_ALL_ROWS if below is None else below
    if wanted.until is not None:
        end = min(end, first_at_or_after(tx, wanted.until))
    first = 0 if wanted.since is None else first_at_or_after(tx, wanted.since)

    def read(last: int, few: int) -> Sequence[HistoryEvent]:
        return history.newest(tx, wanted.subject, wanted.kinds, first=first, below=last, count=few)

    page = fill(in_batches(read, end, lambda event: event.sequence), count, _size)
    return Page(page.items, page.items[-1].sequence if page.more else None)


def _size(event: HistoryEvent) -> int:
    """Return about how many bytes an event takes in an answer, rather too many than too few."""
    return len(event.details_json.encode()) + len(event.reason.encode()) + _SIZE_WITHOUT_TEXTS


def first_at_or_after(tx: ReadTransaction, utc: str) -> int:
    """Return the number of the first event at or after a time; above all numbers if there is none.

    Times never decrease with the number, so this is a binary search, and the history needs no index on time.
    """
    last = history.last(tx)
    if last is None or last.occurred_at < utc:
        return ABOVE_ALL_ROWS
    low, high = 0, last.sequence
    while low < high:
        middle = (low + high) // 2
        event = history.first_from(tx, middle)
        if event is None or event.occurred_at >= utc:
            high = middle
        else:
            low = event.sequence + 1
    return low
