"""What goes over the wire when the gateway stops: every stream's last words first, and then the connection's end."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import grpc

from gateway.domain.refusals import Reason
from tests.gateway.support.grpc_api import RefusedCallError, connected, heartbeat_of, told
from tests.gateway.support.in_process import RunningGateway

HEADERS, PING, GOAWAY = 0x1, 0x6, 0x7
END_STREAM, ACK = 0x1, 0x1


@dataclass
class Wire:
    """A connection with its bytes. While `held` the gateway hears nothing from its client."""

    received: bytearray = field(default_factory=bytearray)
    may_send: asyncio.Event = field(default_factory=asyncio.Event)
    grown: asyncio.Condition = field(default_factory=asyncio.Condition)
    is_closed: bool = False
    port: int = 0

    def frames(self) -> list[tuple[int, int, int]]:
        """Type, flags and stream of each whole frame that the gateway has sent (RFC 9113, section 4.1)."""
        found, at = [], 0
        while at + 9 <= len(self.received):
            length = int.from_bytes(self.received[at : at + 3])
            stream = int.from_bytes(self.received[at + 5 : at + 9]) & 0x7FFFFFFF
            found.append((self.received[at + 3], self.received[at + 4], stream))
            at += 9 + length
        return found

    def ends(self) -> list[int]:
        """Where in `frames` streams end with their trailers."""
        return [n for n, (kind, flags, _) in enumerate(self.frames()) if kind == HEADERS and flags & END_STREAM]

    def goaways(self) -> list[int]:
        """Where in `frames` the connection's end is told."""
        return [n for n, (kind, _, _) in enumerate(self.frames()) if kind == GOAWAY]

    def pings(self) -> list[int]:
        """Where in `frames` an answer is asked for."""
        return [n for n, (kind, flags, _) in enumerate(self.frames()) if kind == PING and not flags & ACK]

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until it holds of what the gateway has sent."""
        async with asyncio.timeout(60), self.grown:
            await self.grown.wait_for(holds)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int) -> None:
        """Pass one connection on to `target`."""
        their_reader, their_writer = await asyncio.open_connection("127.0.0.1", target)
        there = asyncio.create_task(self._there(reader, their_writer))
        await self._back(their_reader, writer)
        there.cancel()
        await asyncio.gather(there, return_exceptions=True)
        their_writer.close()

    async def _there(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self.may_send.wait()
            writer.write(data)

    async def _back(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            async with self.grown:
                self.received += data
                self.grown.notify_all()
            writer.write(data)
        async with self.grown:
            self.is_closed = True
            self.grown.notify_all()
        writer.close()


@asynccontextmanager
async def wire_to(port: int) -> AsyncIterator[Wire]:
    """A wire to a gateway, for one client."""
    wire = Wire()
    wire.may_send.set()
    async with await asyncio.start_server(lambda r, w: wire.serve(r, w, port), "127.0.0.1", 0) as server:
        wire.port = server.sockets[0].getsockname()[1]
        yield wire


async def ended(stream: grpc.aio.UnaryStreamCall) -> RefusedCallError:
    """What a stream was told at its end."""

    async def drain() -> None:
        while await stream.read() is not grpc.aio.EOF:
            pass

    try:
        await told(drain())
    except RefusedCallError as refused:
        return refused
    raise AssertionError("the stream ended without a refusal")


async def test_every_stream_is_told_before_the_connection_which_stays_until_the_client_has_read_it(
    gateway: RunningGateway,
) -> None:
    async with wire_to(gateway.port) as wire, connected(wire.port) as api:
        await api.take("held", "w0")
        await api.submit("po-1")
        streams = [api.stream(f"w{number}", wait=60) for number in range(10)]
        for stream in streams:
            await heartbeat_of(stream)
        watches = [api.watch("po-1") for _ in range(10)]
        for watch in watches:
            await asyncio.wait_for(watch.read(), 60)
        before = len(wire.ends())

        wire.may_send.clear()
        gateway.stop.set()
        refused = await asyncio.gather(*(ended(stream) for stream in [*streams, *watches]))
        assert {(end.status, end.reason) for end in refused} == {("UNAVAILABLE", Reason.SHUTTING_DOWN)}
        await wire.until(wire.goaways)
        (said,) = wire.goaways()
        assert len([end for end in wire.ends()[before:] if end < said]) == 20, "the last words come before the GOAWAY"
        assert not wire.is_closed

        wire.may_send.set()
        await wire.until(lambda: wire.is_closed)
        _, closing = wire.goaways()
        assert [ping for ping in wire.pings() if said < ping < closing], "the client was asked whether it has read that"
