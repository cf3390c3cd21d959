"""Reading and writing large texts without holding up everybody else."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

LARGE_BYTES: Final = 16 * 1024
"""A text up to this size takes ten milliseconds at most to check, whatever it holds."""

# One thread: between it and the event loop the interpreter's lock changes hands every few milliseconds. A second one
# would win nothing and make the loop wait twice as long.
_checking: Final = ThreadPoolExecutor(1, thread_name_prefix="large-text")


async def off_the_loop(work: Callable[[], T]) -> T:
    """Run `work`, which takes longer than a few milliseconds, in the thread for large texts."""
    return await asyncio.get_running_loop().run_in_executor(_checking, work)


async def checked(size: int, check: Callable[[], T]) -> T:
    """Run `check` on a text of so many bytes: in a thread if it is large, where the event loop gets its turns."""
    return await off_the_loop(check) if size > LARGE_BYTES else check()
