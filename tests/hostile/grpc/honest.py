"""Honest clients that have the token of an attack, each on a connection of its own, while the attack lasts."""

import asyncio
import time

import grpc
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from tests.hostile.grpc.attacks import A_PAGE, KNOWN, LIST
from tests.hostile.grpc.http2 import DATA, SETTINGS, WINDOW_UPDATE, Connection, call_headers, frame

MIB = 1024 * 1024
_TURNS_A_SECOND = 10
ASKED = A_PAGE.SerializeToString()


class Lister:
    """Asks for a list, again and again. Every call must succeed."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub: OrderServiceStub = OrderServiceStub(channel)
        self.calls = 0
        self.slowest = 0.0

    async def ask_on(self, until: asyncio.Event) -> None:
        while not until.is_set():
            begun = time.monotonic()
            await self._stub.ListOrders(A_PAGE, metadata=(KNOWN,), timeout=60)
            self.slowest = max(self.slowest, time.monotonic() - begun)
            self.calls += 1
            await asyncio.sleep(0.2)


class SlowReader:
    """Reads lists at `rate` bytes a second, two at a time."""

    def __init__(self, connection: Connection, rate: int = MIB) -> None:
        self._connection = connection
        self._opened = (rate // _TURNS_A_SECOND // 2).to_bytes(4)

    @property
    def bytes_read(self) -> int:
        return self._connection.data_bytes.total()

    async def read_on(self, until: asyncio.Event) -> None:
        """Raises ConnectionError if the gateway ends the connection."""
        await self._connection.told(SETTINGS)
        streams: set[int] = set()
        while not until.is_set():
            streams -= self._connection.ended_streams
            while len(streams) < 2:
                streams.add(self._connection.call(call_headers(LIST, KNOWN)))
                asked = b"\0" + len(ASKED).to_bytes(4) + ASKED
                self._connection.writer.write(frame(DATA, 1, max(streams), asked))
            for stream in (0, 0, *streams):
                self._connection.writer.write(frame(WINDOW_UPDATE, 0, stream, self._opened))
            await asyncio.sleep(1 / _TURNS_A_SECOND)
            if self._connection.has_ended:
                raise ConnectionResetError("the gateway has cut off a slow reader")
