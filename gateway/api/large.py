"""Checking large texts without holding up everybody else."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

LARGE_BYTES: Final = 64 * 1024
"""A text up to this size is checked in about a millisecond; one of 1 MiB takes twenty."""


async def checked(size: int, check: Callable[[], T]) -> T:
    """Run `check` on a text of so many bytes: in a thread if it is large, where the event loop gets its turns."""
    return await asyncio.to_thread(check) if size > LARGE_BYTES else check()
