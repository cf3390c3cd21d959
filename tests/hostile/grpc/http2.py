"""HTTP/2 as a hostile client writes it: frames by hand, so that nothing that a library refuses is left untried."""

import asyncio
import contextlib
import struct
from collections import Counter

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
_INITIAL_WINDOW = 4
NO_WINDOW = struct.pack(">HI", _INITIAL_WINDOW, 0)
"""Settings of a client that takes no answer."""
LARGE_WINDOW = struct.pack(">HI", _INITIAL_WINDOW, 2**30)
"""Settings of a client that takes every answer."""

Pairs = tuple[tuple[str, str], ...]


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def _text(text: str) -> bytes:
    data = text.encode()
    if len(data) < 127:
        return bytes((len(data),)) + data
    rest, encoded = len(data) - 127, bytearray(b"\x7f")
    while rest >= 128:
        encoded.append(rest % 128 + 128)
        rest //= 128
    encoded.append(rest)
    return bytes(encoded) + data


def packed(headers: Pairs) -> bytes:
    """Headers in HPACK, each as a literal that no table keeps."""
    return b"".join(b"\x00" + _text(name) + _text(value) for name, value in headers)


def call_headers(path: str, *more: tuple[str, str]) -> bytes:
    """The headers of a gRPC call."""
    return packed(
        (
            (":method", "POST"),
            (":scheme", "http"),
            (":path", path),
            (":authority", "127.0.0.1"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            *more,
        )
    )


class Connection:
    """A connection that counts what it is told and answers pings, as long as it reads at all."""

    window, stream_window = 65_535, 65_535
    """What the gateway takes now: on the connection, and at first on each stream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer
        self.seen: Counter[int] = Counter()
        self.data_bytes: Counter[int] = Counter()
        self.ended_streams: set[int] = set()
        self._next_stream = 1
        self._reading: asyncio.Task[None] | None = None
        self._windows: Counter[int] = Counter()
        self._opened = asyncio.Event()
        self._pushing: list[asyncio.Task[None]] = []

    @classmethod
    async def open(cls, port: int, *, reads: bool = True, settings: bytes = b"") -> "Connection":
        connection = cls(*await asyncio.open_connection("127.0.0.1", port))
        connection.writer.write(PREFACE + frame(SETTINGS, 0, 0, settings))
        if reads:
            connection._reading = asyncio.create_task(connection._read())
        return connection

    def call(self, headers: bytes, *, then: bytes = b"") -> int:
        """Open a stream with these headers and nothing more, or with frames of its own after it."""
        stream, self._next_stream = self._next_stream, self._next_stream + 2
        self.writer.write(frame(HEADERS, END_HEADERS, stream, headers) + then)
        return stream

    def push(self, stream: int, data: bytes) -> None:
        """Send data of a stream as far and as soon as the gateway's windows let it."""
        self._pushing.append(asyncio.create_task(self._push(stream, data)))

    async def _push(self, stream: int, data: bytes) -> None:
        while data:
            room = min(self.window, self.stream_window + self._windows[stream], 16_384)
            if room <= 0:
                self._opened.clear()
                await self._opened.wait()
                continue
            piece, data = data[:room], data[room:]
            self.window -= len(piece)
            self._windows[stream] -= len(piece)
            self.writer.write(frame(DATA, 0, stream, piece))
            await self.sent()

    async def sent(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def told(self, kind: int) -> None:
        """Wait for the first frame of this kind. Raises TimeoutError."""
        async with asyncio.timeout(30):
            while not self.seen[kind]:  # noqa: ASYNC110 - the reader counts them
                await asyncio.sleep(0.01)

    @property
    def has_ended(self) -> bool:
        """Whether the gateway has ended it."""
        return self._reading is not None and self._reading.done()

    async def ended(self) -> None:
        """Wait until the gateway has ended it."""
        if self._reading is not None:
            await self._reading

    def close(self) -> None:
        for task in (self._reading, *self._pushing):
            if task is not None:
                task.cancel()
        self.writer.transport.abort()

    async def _read(self) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = await self._reader.readexactly(9)
                payload = await self._reader.readexactly(int.from_bytes(head[:3]))
                kind, flags, stream = head[3], head[4], int.from_bytes(head[5:9])
                self.seen[kind] += 1
                self._note_windows(kind, flags, stream, payload)
                if kind == DATA:
                    self.data_bytes[stream] += len(payload)
                if kind == RST_STREAM or (kind in (DATA, HEADERS) and flags & END_STREAM):
                    self.ended_streams.add(stream)
                if kind in (SETTINGS, PING) and not flags & ACK:
                    self.writer.write(frame(kind, ACK, 0, payload if kind == PING else b""))

    def _note_windows(self, kind: int, flags: int, stream: int, payload: bytes) -> None:
        if kind == SETTINGS and not flags & ACK:
            told = dict(struct.iter_unpack(">HI", payload))
            self.stream_window = told.get(_INITIAL_WINDOW, self.stream_window)
        elif kind == WINDOW_UPDATE and stream:
            self._windows[stream] += int.from_bytes(payload)
        elif kind == WINDOW_UPDATE:
            self.window += int.from_bytes(payload)
        else:
            return
        self._opened.set()
