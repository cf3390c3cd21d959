"""A TCP proxy on loopback that keeps what was sent over each connection."""

import asyncio
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class RecordingProxy:
    """Passes bytes both ways; `connections` holds what clients sent, one entry a connection."""

    def __init__(self, target_url: str) -> None:
        parts = urlsplit(target_url)
        self._host, self._port = parts.hostname, parts.port
        self.connections: list[bytearray] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._tasks: set[asyncio.Task[None]] = set()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stop_listening(self) -> None:
        """Refuses whoever comes from now on."""
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sent = bytearray()
        self.connections.append(sent)
        target_reader, target_writer = await asyncio.open_connection(self._host, self._port)
        there = asyncio.create_task(_pass(reader, target_writer, sent))
        back = asyncio.create_task(_pass(target_reader, writer, bytearray()))
        self._tasks |= {there, back}


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seen: bytearray) -> None:
    try:
        while data := await reader.read(65536):
            seen += data
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()
