"""Clients that shake hands in earnest: `python -m tests.hostile.grpc.handshakes PORT AMOUNT CA`, four at a time.

Each must be served: on the gRPC port HTTP/2's first frame comes, on the HTTP port an answer. The program fails with the
first that is not.
"""

import asyncio
import ssl
import sys

PARALLEL = 4


async def shake_hands(port: int, amount: int, authority: str, *, http2: bool) -> None:
    context = ssl.create_default_context(cafile=authority)
    context.set_alpn_protocols(["h2" if http2 else "http/1.1"])
    left = amount

    async def one_after_the_other() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="localhost")
            if not http2:
                writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await asyncio.wait_for(reader.readexactly(9), 30)
            writer.transport.abort()

    await asyncio.gather(*(one_after_the_other() for _ in range(PARALLEL)))


if __name__ == "__main__":
    asyncio.run(shake_hands(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], http2=sys.argv[4] == "h2"))
