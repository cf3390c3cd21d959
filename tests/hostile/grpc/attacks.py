"""What hostile clients do to the gRPC port, one function each, and the table of them.

Run as a program (`python -m tests.hostile.grpc.attacks NAME PORT AMOUNT`), so that what an attack costs its own process
does not count as the gateway's: it says `holding` when all is sent, and ends when its input does. To add one, write a
function and put it into the table with the most that the gateway may grow by.
"""

import asyncio
import contextlib
import ssl
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from google.protobuf.message import Message
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2
from ordergateway.v1 import orders_pb2

from tests.hostile.grpc.http2 import (
    CONTINUATION,
    DATA,
    HEADERS,
    LARGE_WINDOW,
    NO_WINDOW,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    Connection,
    call_headers,
    frame,
    packed,
)

TOKEN = "a-token-of-more-than-sixteen-letters"
TOKENS = (TOKEN, "a-second-token-of-more-than-sixteen-letters", "a-third-token-of-more-than-sixteen-letters")
SUBMIT, WATCH_ORDER = "/ordergateway.v1.OrderService/SubmitOrder", "/ordergateway.v1.OrderService/WatchOrder"
LIST, GET = "/ordergateway.v1.OrderService/ListOrders", "/ordergateway.v1.OrderService/GetOrder"
CHECK, WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
KNOWN = ("authorization", f"Bearer {TOKEN}")
CONNECTIONS = 6
MIB = 1024 * 1024
ORDERS_OF_A_PAGE = 8
SMALL = 15_000
"""Letters of an order whose answer waits for no others."""

LEAVING_SECONDS = 10.0
"""For how long answers are left, which is longer than the gateway is patient."""

PUSHING_SECONDS = 3.0
"""For how long a gateway is given bytes; the first second of it fills one that takes them all."""


async def _spread(
    port: int, amount: int, headers: bytes, *, then: Callable[[int], bytes] = lambda _stream: b""
) -> None:
    """Open so many calls over a few connections, at a pace at which grpc throws none away by itself."""
    for _ in range(CONNECTIONS):
        connection = await Connection.open(port)
        for number in range(amount // CONNECTIONS):
            connection.call(headers, then=then(2 * number + 1))
            if number % 50 == 0:
                await connection.sent()
                await asyncio.sleep(0.02)
        HELD.append(connection)


async def headers_without_a_token(port: int, amount: int) -> None:
    await _spread(port, amount, call_headers(SUBMIT))


async def headers_with_a_token(port: int, amount: int) -> None:
    await _spread(port, amount, call_headers(SUBMIT, KNOWN))


async def watches_without_a_request(port: int, amount: int) -> None:
    await _spread(port, amount, call_headers(WATCH_ORDER, KNOWN))


async def large_headers(port: int, amount: int) -> None:
    await _spread(port, amount, call_headers(SUBMIT, ("x-filling", "x" * 15_000)))


async def methods_that_are_not_there(port: int, amount: int) -> None:
    await _spread(port, amount, call_headers("/no.such.Service/Method"))


async def health_checks_without_a_request(port: int, amount: int) -> None:
    await _spread(port, amount, call_headers(CHECK))


async def health_watches(port: int, amount: int) -> None:
    await _spread(port, amount, call_headers(WATCH), then=lambda stream: frame(DATA, 1, stream, bytes(5)))


async def silent_reflections(port: int, amount: int) -> None:
    await _spread(port, amount, call_headers(REFLECTION, KNOWN))


async def half_messages(port: int, amount: int) -> None:
    """4 MiB are announced, a few bytes come."""
    announced = b"\0" + (4 * 1024 * 1024 - 1).to_bytes(4) + bytes(1000)
    await _spread(port, amount, call_headers(SUBMIT, KNOWN), then=lambda stream: frame(DATA, 0, stream, announced))


async def _pushed(port: int, amount: int, headers: bytes, message: bytes, *, keep_back: int) -> None:
    """Calls whose requests are sent as fast as the gateway takes them, up to the last bytes, which are kept back."""
    data = b"\0" + len(message).to_bytes(4) + message
    for _ in range(CONNECTIONS):
        connection = await Connection.open(port)
        await connection.told(SETTINGS)
        for _ in range(amount // CONNECTIONS):
            connection.push(connection.call(headers), data[: len(data) - keep_back])
        HELD.append(connection)
    await asyncio.sleep(PUSHING_SECONDS)


async def all_but_the_last_byte_to_health(port: int, amount: int) -> None:
    await _pushed(port, amount, call_headers(CHECK), bytes(MIB), keep_back=1)


async def all_but_the_last_byte_to_health_watches(port: int, amount: int) -> None:
    await _pushed(port, amount, call_headers(WATCH), bytes(MIB), keep_back=1)


async def watches_of_long_names(port: int, amount: int) -> None:
    name = "x" * (MIB - 8)
    request = health_pb2.HealthCheckRequest(service=name).SerializeToString()
    await _pushed(port, amount, call_headers(WATCH), request, keep_back=0)


async def all_but_the_last_byte(port: int, amount: int) -> None:
    await _pushed(port, amount, call_headers(SUBMIT, KNOWN), bytes(MIB), keep_back=1)


async def streams_reset_at_once(port: int, amount: int) -> None:
    reset = (8).to_bytes(4)
    await _spread(port, amount, call_headers(SUBMIT, KNOWN), then=lambda stream: frame(RST_STREAM, 0, stream, reset))


async def clients_that_leave(port: int, amount: int) -> None:
    """Whole requests, and the connection is gone before the answers come."""
    for _ in range(amount // 20):
        connection = await Connection.open(port)
        for number in range(20):
            headers = call_headers(LIST, KNOWN) if number % 2 else call_headers(CHECK)
            connection.call(headers, then=frame(DATA, 1, 2 * number + 1, bytes(5)))
        await connection.sent()
        connection.close()
        await asyncio.sleep(0.01)


async def answers_broken_off(port: int, amount: int) -> None:
    """More answers than the client's window takes, so they wait for the client, who leaves."""
    await _file(port, "large", 40_000)
    wanted = _message(orders_pb2.GetOrderRequest(task_id="large"))
    for _ in range(amount // 20):
        connection = await Connection.open(port)
        for number in range(20):
            connection.call(call_headers(GET, KNOWN), then=frame(DATA, 1, 2 * number + 1, wanted))
        await connection.sent()
        await connection.told(DATA)
        connection.close()


async def _file(port: int, task_id: str, letters: int) -> None:
    """File an order of this size."""
    intent = '{"x":"' + "x" * letters + '"}'
    order = orders_pb2.SubmitOrderRequest(task_id=task_id, site="sandbox", intent_json=intent)
    filing = await Connection.open(port)
    await filing.told(SETTINGS)
    filing.push(filing.call(call_headers(SUBMIT, KNOWN)), _message(order))
    await filing.told(HEADERS)
    filing.close()


async def _left(
    port: int, amount: int, path: str, request: Message, *, connections: int = CONNECTIONS, tokens: int = 1
) -> None:
    """Calls whose answers a client does not take: it opens no window, but answers pings."""
    for number in range(ORDERS_OF_A_PAGE):
        await _file(port, f"large-{number}", 250_000)
    await _file(port, "small", SMALL)
    for number in range(connections):
        connection = await Connection.open(port, settings=NO_WINDOW)
        await connection.told(SETTINGS)
        headers = call_headers(path, ("authorization", f"Bearer {TOKENS[number % tokens]}"))
        for _ in range(amount // connections):
            connection.writer.write(frame(DATA, 1, connection.call(headers), _message(request)))
        await connection.sent()
        HELD.append(connection)
    await asyncio.sleep(LEAVING_SECONDS)


A_PAGE = orders_pb2.ListOrdersRequest(page_size=200)


async def lists_left_on_one_connection(port: int, amount: int) -> None:
    await _left(port, amount, LIST, A_PAGE, connections=1)


async def lists_left_on_six_connections(port: int, amount: int) -> None:
    await _left(port, amount, LIST, A_PAGE)


async def lists_left_on_sixty_connections(port: int, amount: int) -> None:
    await _left(port, amount, LIST, A_PAGE, connections=60)


async def lists_left_by_three_tokens(port: int, amount: int) -> None:
    await _left(port, amount, LIST, A_PAGE, tokens=3)


async def orders_left(port: int, amount: int) -> None:
    await _left(port, amount, GET, orders_pb2.GetOrderRequest(task_id="large-1"))


async def small_orders_left(port: int, amount: int) -> None:
    await _left(port, amount, GET, orders_pb2.GetOrderRequest(task_id="small"))


async def watched_orders_left(port: int, amount: int) -> None:
    await _left(port, amount, WATCH_ORDER, orders_pb2.WatchOrderRequest(task_id="large-1"))


async def watched_orders_taken(port: int, amount: int) -> None:
    """Watches of a large order that take what they are told, and go on."""
    await _file(port, "large", 250_000)
    headers = call_headers(WATCH_ORDER, KNOWN)
    wanted = _message(orders_pb2.WatchOrderRequest(task_id="large"))
    for _ in range(CONNECTIONS):
        connection = await Connection.open(port, settings=LARGE_WINDOW)
        await connection.told(SETTINGS)
        connection.writer.write(frame(WINDOW_UPDATE, 0, 0, (2**30).to_bytes(4)))
        for _ in range(amount // CONNECTIONS):
            connection.writer.write(frame(DATA, 1, connection.call(headers), wanted))
        await connection.sent()
        HELD.append(connection)
    await asyncio.sleep(LEAVING_SECONDS)


async def reflections_left(port: int, amount: int) -> None:
    asked = reflection_pb2.ServerReflectionRequest(file_containing_symbol="ordergateway.v1.OrderService")
    await _left(port, amount, REFLECTION, asked)


async def health_checks_left(port: int, amount: int) -> None:
    await _left(port, amount, CHECK, health_pb2.HealthCheckRequest())


def _message(message: Message) -> bytes:
    data = message.SerializeToString()
    return b"\0" + len(data).to_bytes(4) + data


async def answers_that_nobody_reads(port: int, amount: int) -> None:
    for _ in range(CONNECTIONS):
        connection = await Connection.open(port, reads=False)
        connection.writer.transport.pause_reading()  # type: ignore[attr-defined]
        for _ in range(amount // CONNECTIONS):
            connection.call(call_headers(SUBMIT))
        HELD.append(connection)
    await asyncio.sleep(1)


async def connections_that_say_nothing(port: int, amount: int) -> None:
    for _ in range(amount):
        HELD.append(Connection(*await asyncio.open_connection("127.0.0.1", port)))


async def prefaces_that_stop(port: int, amount: int) -> None:
    await connections_that_say_nothing(port, amount)
    for connection in HELD:
        connection.writer.write(b"PRI * HTTP/2.0\r\n")


async def headers_that_go_on(port: int, amount: int) -> None:
    """One block of headers in ever more CONTINUATION frames."""
    filling = packed((("x-filling", "x" * 1000),))
    for _ in range(CONNECTIONS):
        connection = await Connection.open(port)
        connection.writer.write(frame(HEADERS, 0, 1, call_headers(SUBMIT)))
        for number in range(amount // CONNECTIONS):
            connection.writer.write(frame(CONTINUATION, 0, 1, filling))
            if number % 50 == 0:
                await connection.sent()
        HELD.append(connection)


async def pings_and_settings(port: int, amount: int) -> None:
    for _ in range(CONNECTIONS):
        connection = await Connection.open(port)
        for number in range(amount // CONNECTIONS):
            connection.writer.write(frame(PING, 0, 0, bytes(8)) + frame(SETTINGS, 0, 0, b"\0\4\0\1\0\0"))
            if number % 50 == 0:
                await connection.sent()
        HELD.append(connection)


async def connections_closed_at_once(port: int, amount: int) -> None:
    """200 at a time."""
    left = amount

    async def one_after_the_other() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.transport.abort()

    await asyncio.gather(*(one_after_the_other() for _ in range(200)))


async def handshakes_that_stop(port: int, amount: int) -> None:
    """The client's first flight, and silence."""
    await connections_that_say_nothing(port, amount)
    for connection in HELD:
        connection.writer.write(_hello(None))


async def forged_server_names(port: int, amount: int) -> None:
    """A handshake's server name that would be a line of the log."""
    for _ in range(amount):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(_hello("x\n2026-11-30T00:00:00.000Z ERROR FORGED\x1b[2J"))
        await reader.read(1)
        writer.transport.abort()


def _hello(server_name: str | None) -> bytes:
    """A client's first flight."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=server_name).do_handshake()
    return outgoing.read()


async def noise(port: int, amount: int) -> None:
    for number in range(amount):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(bytes((number * step) % 256 for step in range(1, 500)))
        writer.close()


HELD: list[Connection] = []
"""Connections that stay open until the program ends."""

Attack = Callable[[int, int], Awaitable[None]]


@dataclass(frozen=True)
class Row:
    """An attack: how much of it in `make test` (0: none) and in `make test-extended`, and the bound on memory."""

    attack: Attack
    some: int
    many: int
    most_growth_mib: int
    tls: bool = False
    spares_its_token: bool = False
    """Whether others with the attack's token must be served too, each on a connection of its own."""

    @property
    def name(self) -> str:
        return self.attack.__name__


TABLE = (
    Row(headers_without_a_token, 6_000, 60_000, 80),
    Row(headers_with_a_token, 0, 60_000, 80),
    Row(watches_without_a_request, 0, 60_000, 150),
    Row(large_headers, 0, 12_000, 400),
    Row(methods_that_are_not_there, 0, 60_000, 100),
    Row(health_checks_without_a_request, 0, 60_000, 80),
    Row(health_watches, 0, 60_000, 150),
    Row(all_but_the_last_byte_to_health, 240, 1_200, 100),
    Row(all_but_the_last_byte_to_health_watches, 0, 1_200, 100),
    Row(watches_of_long_names, 240, 1_200, 100),
    Row(all_but_the_last_byte, 240, 1_200, 100),
    Row(silent_reflections, 0, 12_000, 150),
    Row(half_messages, 0, 12_000, 150),
    Row(streams_reset_at_once, 0, 60_000, 150),
    Row(clients_that_leave, 0, 10_000, 150),
    Row(answers_broken_off, 400, 4_000, 250),
    Row(lists_left_on_one_connection, 0, 1_200, 150, spares_its_token=True),
    Row(lists_left_on_six_connections, 600, 1_200, 150, spares_its_token=True),
    Row(lists_left_on_sixty_connections, 0, 1_200, 150, spares_its_token=True),
    Row(lists_left_by_three_tokens, 0, 1_200, 150, spares_its_token=True),
    Row(orders_left, 0, 3_000, 200, spares_its_token=True),
    Row(small_orders_left, 0, 6_000, 250, spares_its_token=True),
    Row(watched_orders_left, 0, 3_000, 250, spares_its_token=True),
    Row(watched_orders_taken, 0, 3_000, 250, spares_its_token=True),
    Row(reflections_left, 0, 3_000, 150, spares_its_token=True),
    Row(health_checks_left, 0, 6_000, 250, spares_its_token=True),
    Row(answers_that_nobody_reads, 0, 12_000, 400),
    Row(connections_that_say_nothing, 0, 1_000, 150),
    Row(prefaces_that_stop, 0, 1_000, 150),
    Row(headers_that_go_on, 0, 12_000, 100),
    Row(pings_and_settings, 0, 60_000, 100),
    Row(connections_closed_at_once, 0, 20_000, 100, tls=True),
    Row(handshakes_that_stop, 0, 1_000, 200, tls=True),
    Row(forged_server_names, 20, 500, 100, tls=True),
    Row(noise, 0, 2_000, 100, tls=True),
)


async def _run(row: Row, port: int, amount: int) -> None:
    try:
        await row.attack(port, amount)
    except ConnectionError as error:  # the gateway's way to end an attack
        print(type(error).__name__, file=sys.stderr)
    print("holding", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for connection in HELD:
        connection.close()


if __name__ == "__main__":
    (wanted,) = (row for row in TABLE if row.name == sys.argv[1])
    asyncio.run(_run(wanted, int(sys.argv[2]), int(sys.argv[3])))
