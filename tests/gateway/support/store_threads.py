"""In which thread a store runs operations: ours in the event loop's, one over the network will not."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from gateway.store.sqlite.writer import GroupWriter


@contextmanager
def run_on_the_loop() -> Iterator[None]:
    """Leave the writer as it is."""
    yield


@contextmanager
def run_in_a_thread() -> Iterator[None]:
    """Let every writer run operations and hooks in its thread.

    The loop is in its debug mode, in which it refuses most of what another thread must not do with it.
    """
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.slow_callback_duration = 60
    with patch.object(GroupWriter, "_execute", GroupWriter._in_thread):
        yield
