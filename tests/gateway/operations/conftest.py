"""A book with a person beside it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.gateway.operations.person import Person
from tests.gateway.support.book import Book
from tests.gateway.support.manual_time import ManualTime


@pytest.fixture
def person(book: Book) -> Person:
    """The person in charge, at `book`."""
    return Person(book)


@pytest.fixture
def other_book(tmp_path: Path, time: ManualTime) -> Iterator[Book]:
    """A second gateway's book, for a restore to go into."""
    with Book(tmp_path / "other" / "gateway.db", time) as made:
        yield made
