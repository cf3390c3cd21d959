"""The history as a list: filters, pages, and that nothing changes what was written."""

import pytest

from gateway.domain.paging import MAX_PAGE_BYTES
from gateway.domain.states import OrderState
from gateway.store import history
from tests.gateway.operations.person import Person
from tests.gateway.support import databases
from tests.gateway.support.book import UPSTREAM, Book
from tests.gateway.support.manual_time import TICK


def test_newest_first_with_pages_that_neither_skip_nor_repeat(book: Book, person: Person) -> None:
    lease = book.take()
    for sequence in range(1, 8):
        book.report(lease, OrderState.CREATED, sequence=sequence)
    whole = person.events().items
    assert [event.sequence for event in whole] == list(range(len(whole), 0, -1))
    assert whole[-1].kind == "submit"
    paged, below = [], None
    while True:
        page = person.events(below=below, count=4)
        paged += page.items
        below = page.next_after
        if below is None:
            break
    assert tuple(paged) == whole


def test_a_page_of_large_ones_is_short_and_paging_meets_all(book: Book, person: Person) -> None:
    lease = book.take()
    for sequence in range(1, 301):
        book.report(lease, OrderState.CREATED, sequence=sequence, detail="\U0001f600" * 4_000)
    met, below = [], None
    while True:
        page = person.events(below=below, count=200)
        assert sum(len(event.details_json.encode()) for event in page.items) <= MAX_PAGE_BYTES
        met += [event.sequence for event in page.items]
        below = page.next_after
        if below is None:
            break
    assert met == list(range(met[0], 0, -1))
    assert len(met) > 300


def test_filters(book: Book, person: Person) -> None:
    book.submit("po-1")
    book.time.advance(10)
    book.submit("po-2")
    at = book.clock.now().utc
    book.take("po-1")
    person.pause()
    assert {event.subject for event in person.events("po-2").items} == {"po-2"}
    assert [event.kind for event in person.events(None, "pause", "lease").items] == ["pause", "lease"]
    assert [event.kind for event in person.events("po-1", "lease", "expire_now").items] == ["lease"]
    assert [event.subject for event in person.events(until=at).items] == ["po-1"]
    assert [event.kind for event in person.events(since=at).items] == ["pause", "acknowledge", "lease", "submit"]
    assert person.events("po-1", "submit", since=at).items == ()
    book.time.advance(TICK)
    later = book.clock.now().utc
    assert person.events(since=later).items == ()
    assert len(person.events(until=later).items) == 5
    assert len(person.events(since=at, until=later).items) == 4


def test_a_kind_is_a_whole_word(book: Book, person: Person) -> None:
    book.take()
    person.expire_now()
    assert person.events(None, "expire").items == ()


@pytest.mark.parametrize("sql", ["UPDATE events SET reason = 'x'", "DELETE FROM events"])
def test_the_database_keeps_what_was_written(book: Book, sql: str) -> None:
    book.submit()
    with pytest.raises(databases.violations(), match="append-only"):
        book.connection.execute(sql)


def test_a_subject_s_history_holds_what_came_before_its_task_was_there(book: Book, person: Person) -> None:
    for kind in ("heard_of", "heard_again"):
        book.run(history.append, "po-1", kind, UPSTREAM)
    book.submit()
    person.cancel()
    kinds = ["cancel", "submit", "heard_again", "heard_of"]
    assert [event.kind for event in person.events("po-1").items] == kinds
    paged, below = [], None
    while True:
        page = person.events("po-1", below=below, count=1)
        paged += [event.kind for event in page.items]
        below = page.next_after
        if below is None:
            break
    assert paged == kinds
