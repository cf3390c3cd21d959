"""A TCP proxy on loopback that loses answers, cuts connections and gives up on silent ones."""

import asyncio
from types import TracebackType
from typing import Self


class Proxy:
    """Passes bytes both ways to a port of this machine.

    `lose_answers`: what the server sends is swallowed. `idle_seconds`: a connection over which nothing came from the
    server for that long is closed, as proxies do; 0 never.
    """

    def __init__(self, target_port: int, idle_seconds: float = 0) -> None:
        self._target_port = target_port
        self._idle_seconds = idle_seconds
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.lose_answers = False
        self.swallowed = 0
        self.gave_up = 0
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Break every connection."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, server_writer}
        for work in (self._there(reader, server_writer), self._back(server_reader, writer, server_writer)):
            task = asyncio.create_task(work)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _there(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()

    async def _back(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server_writer: asyncio.StreamWriter
    ) -> None:
        try:
            while data := await asyncio.wait_for(reader.read(65536), self._idle_seconds or None):
                if self.lose_answers:
                    self.swallowed += len(data)
                else:
                    writer.write(data)
                    await writer.drain()
        except TimeoutError:
            self.gave_up += 1
            server_writer.transport.abort()
        except OSError:
            pass
        finally:
            writer.close()
