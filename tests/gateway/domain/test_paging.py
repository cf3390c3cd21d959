"""A page is as long as was asked for, shorter where its items are large, and never empty while there are any."""

import pytest

from gateway.domain.paging import MAX_PAGE_BYTES, Filled, fill, in_batches

HALF = MAX_PAGE_BYTES // 2


@pytest.mark.parametrize(
    ("sizes", "count", "taken", "more"),
    [
        ([], 5, 0, False),
        ([1] * 5, 5, 5, False),
        ([1] * 6, 5, 5, True),
        ([HALF, HALF], 5, 2, False),
        ([HALF, HALF, 1], 5, 2, True),
        ([MAX_PAGE_BYTES + 1], 5, 1, False),
        ([MAX_PAGE_BYTES + 1, 1], 5, 1, True),
    ],
)
def test_so_many_items_and_so_many_bytes_but_at_least_one(sizes: list[int], count: int, taken: int, more: bool) -> None:
    assert fill(sizes, count, lambda size: size) == Filled(tuple(sizes[:taken]), more)


def test_batches_bring_every_row_once() -> None:
    rows = list(range(100, 0, -1))
    asked: list[int] = []

    def read(below: int, count: int) -> list[int]:
        asked.append(below)
        return [row for row in rows if row < below][:count]

    assert list(in_batches(read, 1_000, lambda row: row)) == rows
    few = in_batches(read, 1_000, lambda row: row)
    asked.clear()
    assert next(few) == 100
    assert asked == [1_000], "a page of one row reads one batch"
