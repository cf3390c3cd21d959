"""A TCP proxy on loopback that can lose answers, hold everything up, swallow everything, or cut."""

import asyncio
from enum import StrEnum
from types import TracebackType
from typing import Self


class Mode(StrEnum):
    """What the proxy does with what passes it from now on."""

    PASS = "pass"
    DROP_ANSWERS = "drop answers"
    STALL = "stall"
    BLACK_HOLE = "black hole"
    CUT = "cut"


class FaultyProxy:
    """Passes bytes to a port as its mode says; `CUT` closes what is open and refuses what is new."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._mode = Mode.PASS
        self._changed = asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def set(self, mode: Mode) -> None:
        """Changes the weather, for open connections too."""
        self._mode = mode
        self._changed.set()
        self._changed = asyncio.Event()
        if mode is Mode.CUT:
            for writer in self._writers:
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._mode is Mode.CUT:
            writer.transport.abort()
            return
        try:
            target_reader, target_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, target_writer}
        self._writers |= both
        there = asyncio.create_task(self._pass(reader, target_writer, answers=False))
        back = asyncio.create_task(self._pass(target_reader, writer, answers=True))
        self._tasks |= {there, back}
        await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        for task in (there, back):
            task.cancel()
            self._tasks.discard(task)
        self._writers -= both
        for end in both:
            end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        try:
            while data := await reader.read(65536):
                while self._mode is Mode.STALL:
                    await self._changed.wait()
                if self._mode is Mode.BLACK_HOLE or (answers and self._mode is Mode.DROP_ANSWERS):
                    continue
                writer.write(data)
                await writer.drain()
        except OSError:
            return
