"""A book behind the port `Store`, so that sweeps run on it step by step."""

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from gateway.domain.instant import Instant
from gateway.store.port import PrepareHook, Transaction
from tests.gateway.support.book import Book

P = ParamSpec("P")
T = TypeVar("T")


class BookStore:
    """Runs each operation at once, in a transaction of its own."""

    def __init__(self, book: Book) -> None:
        self.book = book

    async def write(
        self, operation: Callable[Concatenate[Transaction, Instant, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return self.book.run(operation, *args, **kwargs)

    async def write_many(
        self, operation: Callable[Concatenate[Transaction, Instant, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return self.book.run(operation, *args, **kwargs)

    def add_pre_commit_hook(self, topic: str, prepare: PrepareHook) -> None:
        raise AssertionError(f"no sweep follows {topic}")

    async def read(
        self, operation: Callable[Concatenate[Transaction, Instant, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return self.book.run(operation, *args, **kwargs)
