"""Each engine, empty, behind the port; and the book of the use cases on it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.gateway.store.conformance.engines import ENGINES, PARAMETERS, Engine
from tests.gateway.support.book import POLICY, Book
from tests.gateway.support.manual_time import ManualTime

T = TypeVar("T")


@pytest.fixture(params=PARAMETERS)
async def engine(request: pytest.FixtureRequest, tmp_path: Path, time: ManualTime) -> AsyncIterator[Engine]:
    """A store of each engine."""
    async with ENGINES[request.param](tmp_path, time) as opened:
        yield opened


class StoreBook(Book):
    """Runs the use cases in a store; `connection` is a second one, beside the store."""

    def __init__(self, engine: Engine, call: Callable[[Coroutine[Any, Any, Any]], Any], time: ManualTime) -> None:
        self.engine, self.time, self.policy = engine, time, POLICY
        self.connection = engine  # type: ignore[assignment]
        self._call = call
        self._tokens = 0

    def run(self, operation: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        result: T = self._call(self.engine.store.write(operation, *args, **kwargs))
        return result


@contextmanager
def loop_in_thread() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """An event loop for tests that are not asynchronous; gives how to run a coroutine in it."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield lambda work: asyncio.run_coroutine_threadsafe(work, loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


@pytest.fixture(params=PARAMETERS)
def book(request: pytest.FixtureRequest, tmp_path: Path, time: ManualTime) -> Iterator[StoreBook]:
    """The use cases on a store of each engine."""
    with loop_in_thread() as call:
        opened = ENGINES[request.param](tmp_path, time)
        engine = call(opened.__aenter__())  # type: ignore[arg-type]
        try:
            yield StoreBook(engine, call, time)
        finally:
            call(opened.__aexit__(None, None, None))  # type: ignore[arg-type]
