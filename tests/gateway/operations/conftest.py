"""A book with a person beside it."""

import pytest

from tests.gateway.operations.person import Person
from tests.gateway.support.book import Book


@pytest.fixture
def person(book: Book) -> Person:
    """The person in charge, at `book`."""
    return Person(book)
