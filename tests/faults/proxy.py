"""A TCP proxy on loopback that can lose answers, hold everything up, swallow everything, cut, or reset."""

import asyncio
import socket
import struct
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

Target = int | Path
"""A port of this machine, or a Unix socket."""

_RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Mode(StrEnum):
    """What the proxy does with what passes it from now on."""

    PASS = "pass"
    DROP_ANSWERS = "drop answers"
    STALL = "stall"
    BLACK_HOLE = "black hole"
    CUT = "cut"
    RESET = "reset"


_ENDS = (Mode.CUT, Mode.RESET)


class FaultyProxy:
    """Passes bytes to a target as its mode says; `CUT` and `RESET` end what is open and refuse what is new.

    Of several targets each connection gets another one, the next where one refuses, as from a load balancer.
    """

    def __init__(self, *targets: Target) -> None:
        self._targets = list(targets)
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
        if mode in _ENDS:
            for writer in self._writers:
                self._end(writer)

    def strikes(self, data: bytes) -> bool:
        """Whether the proxy does something of its own with this request, and passes it no further."""
        return False

    def _end(self, writer: asyncio.StreamWriter) -> None:
        if writer.is_closing():
            return
        end_of = writer.get_extra_info("socket")
        if self._mode is Mode.RESET and end_of.family != socket.AF_UNIX:
            end_of.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
        writer.transport.abort()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        self._targets.append(self._targets.pop(0))
        for target in reversed(self._targets):
            try:
                if isinstance(target, Path):
                    return await asyncio.open_unix_connection(target)
                return await asyncio.open_connection("127.0.0.1", target)
            except OSError:
                continue
        return None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there_and_back = None if self._mode in _ENDS else await self._connect()
        if there_and_back is None:
            self._end(writer)
            return
        target_reader, target_writer = there_and_back
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
            self._end(end)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool) -> None:
        try:
            while data := await reader.read(65536):
                while self._mode is Mode.STALL:
                    await self._changed.wait()
                if self._mode is Mode.BLACK_HOLE or (answers and self._mode is Mode.DROP_ANSWERS):
                    continue
                if not answers and self.strikes(data):
                    continue
                writer.write(data)
                await writer.drain()
        except OSError:
            return
