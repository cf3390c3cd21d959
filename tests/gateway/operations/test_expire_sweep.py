"""The sweep of the leases also writes down where the service clock stands, so that a crash loses little of it."""

from datetime import timedelta

import pytest

from gateway.sweeps.expire import ExpireSweep
from tests.gateway.operations.book_store import BookStore
from tests.gateway.support.book import Book


@pytest.mark.sqlite
async def test_the_clock_is_written_down_with_every_round(book: Book) -> None:
    sweep = ExpireSweep(BookStore(book), 5, book.clock.save)
    stood = []
    for _ in range(2):
        book.time.advance(timedelta(minutes=7))
        await sweep.run_once()
        (row,) = book.rows("SELECT elapsed_us, utc FROM clock_anchor")
        stood.append(row)
    assert stood[1]["elapsed_us"] - stood[0]["elapsed_us"] == 7 * 60 * 1_000_000
    assert stood[1]["utc"] > stood[0]["utc"]


async def test_after_a_crash_on_another_boot_the_clock_goes_on_from_there(book: Book) -> None:
    book.submit()
    lease = book.take()
    book.time.advance(book.policy.lease_ttl - timedelta(seconds=1))
    await ExpireSweep(BookStore(book), 5, book.clock.save).run_once()
    before = book.clock.now().elapsed_us
    book.time.reboot(timedelta(minutes=1))
    book.restart(crash=True)
    assert book.clock.now().elapsed_us >= before
    assert book.task().lease_count == lease.lease_count
