"""Has pages read in a process of its own, which is ended and replaced where a page takes too long.

The worker's loop renews leases, delivers reports and obeys a stop; a page that keeps a parser busy must hold up none of
that. What comes back is plain data: JSON, made into the type that the reading function declares.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, Concatenate, ParamSpec, TypeVar, get_type_hints

from pydantic import TypeAdapter

from worker.sites.page_process import LENGTH
from worker.sites.port import Page, PageChangedError

P = ParamSpec("P")
T = TypeVar("T")

CPU_SECONDS = 5.0
MEMORY_MIB = 512
# What Python needs to start. Tokens and passwords stay in the worker.
_ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME", "LANG", "LC_ALL", "LC_CTYPE")


class PageReader:
    """Runs reading functions, one page at a time, in one process that is started at the first page.

    A reading function is a module's public function `(page, *args) -> value` whose arguments are JSON values and whose
    return type pydantic can build from JSON; it raises PageChangedError. `cpu_seconds` and `memory_mib` bound one page.
    """

    def __init__(self, *, cpu_seconds: float = CPU_SECONDS, memory_mib: int = MEMORY_MIB) -> None:
        self._cpu_seconds = cpu_seconds
        self._memory_mib = memory_mib
        self._process: Process | None = None
        self._turn = asyncio.Lock()

    async def read(self, reading: Callable[Concatenate[Page, P], T], page: Page, *args: P.args, **_: P.kwargs) -> T:
        """Return what `reading(page, *args)` returns.

        Raises PageChangedError where it does, and where the page is over a limit; OSError where no process can be
        started.
        """
        order = {
            "module": reading.__module__,
            "name": reading.__name__,
            "args": args,
            "url": page.url,
            "method": page.method,
            "http_status": page.http_status,
        }
        async with self._turn:
            answer = await self._ask(json.dumps(order).encode(), page)
        if "fault" in answer:
            raise RuntimeError(f"{reading.__name__} failed: {answer['fault']}")
        if "changed" in answer:
            raise PageChangedError(answer["changed"], error_code=answer.get("error_code"), page=page)
        value: T = _result_of(reading).validate_python(answer["value"])
        return value

    async def close(self) -> None:
        """End the process."""
        await self._end()

    async def _ask(self, order: bytes, page: Page) -> dict[str, Any]:
        """Return the process's answer. A process that was ended, perhaps before it saw the page, is replaced once."""
        for again in (True, False):
            try:
                return await self._exchange(order, page.html)
            except (asyncio.IncompleteReadError, ConnectionError) as error:
                ended_by = await self._end()
                if ended_by == -signal.SIGPROF:
                    message = f"the page {page.url} takes more than {self._cpu_seconds:g} s to read"
                    raise PageChangedError(message, page=page) from error
                if not again:
                    message = f"the page {page.url} ends whoever reads it (exit status {ended_by})"
                    raise PageChangedError(message, page=page) from error
            except BaseException:
                # Broken off: what the process still has to say would be taken for the answer to the next page.
                await self._end()
                raise
        raise AssertionError("the second try returns or raises")

    async def _exchange(self, order: bytes, html: bytes) -> dict[str, Any]:
        process = await self._running()
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018 -- both are pipes
        for frame in (order, html):
            process.stdin.write(LENGTH.pack(len(frame)) + frame)
        await process.stdin.drain()
        (size,) = LENGTH.unpack(await process.stdout.readexactly(LENGTH.size))
        answer: dict[str, Any] = json.loads(await process.stdout.readexactly(size))
        return answer

    async def _running(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            await self._end()
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # nothing is imported from whatever folder this is run in
                "-m",
                "worker.sites.page_process",
                str(self._cpu_seconds),
                str(self._memory_mib),
                stdin=PIPE,
                stdout=PIPE,
                stderr=None if sys.stderr else DEVNULL,
                env={name: value for name in _ENVIRONMENT if (value := os.environ.get(name)) is not None},
            )
        return self._process

    async def _end(self) -> int | None:
        """End the process, if there is one, and reap it; return its exit status."""
        process, self._process = self._process, None
        if process is None:
            return None
        if process.stdin is not None:
            process.stdin.close()
        # One that has ended by itself, and is not reaped yet, keeps the status that it ended with.
        with suppress(ProcessLookupError):
            process.kill()
        return await process.wait()


@cache
def _result_of(reading: Callable[..., Any]) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(reading)["return"])
