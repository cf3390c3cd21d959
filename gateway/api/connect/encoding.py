"""Large answers over Connect: written and compressed beside the event loop, since connectrpc itself does it there."""

import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final

from connectrpc.codec import Codec
from connectrpc.compression.gzip import GzipCompression
from google.protobuf.message import Message

from gateway.api.offload import LARGE_BYTES, off_the_loop

_LEVEL: Final = 1
"""A page shrinks to about the same as at higher levels, in a fifth of the time."""

_ACCEPTING: Final = ("accept-encoding", "connect-accept-encoding", "grpc-accept-encoding")

_GZIP: Final = 31  # zlib's window of 32 KiB with gzip's header


class PreparedBytes(bytes):
    """An answer as it was written, and its compressed form if the client takes that."""

    compressed: bytes | None = None


class Prepared:
    """Stands for a message whose bytes are there already."""

    def __init__(self, data: PreparedBytes) -> None:
        self.data = data


def written(message: Message | Prepared, write: Callable[[Message], bytes]) -> bytes:
    """Return a message's bytes, by `write` if they are not there yet."""
    return message.data if isinstance(message, Prepared) else write(message)


class PreparedGzip(GzipCompression):
    """Compresses what has not been compressed yet."""

    def compress(self, data: bytes | bytearray | memoryview) -> bytes:
        """Return the compressed form."""
        if isinstance(data, PreparedBytes) and data.compressed is not None:
            return data.compressed
        return _compress(bytes(data))


class Preparing:
    """Prepares what services answer. `codecs` are those of the application, by their names."""

    def __init__(self, codecs: Mapping[str, Codec[Any, Any]]) -> None:
        self._codecs = codecs

    async def one(self, answer: Awaitable[Message], context: Any) -> Any:
        """Return a method's answer, prepared where it is large."""
        return await self._prepared(await answer, context)

    async def each(self, answers: AsyncGenerator[Message], context: Any) -> AsyncGenerator[Any]:
        """Yield a stream's answers, those prepared that are large."""
        async with aclosing(answers):
            async for answer in answers:
                yield await self._prepared(answer, context)

    async def _prepared(self, message: Message, context: Any) -> Any:
        # How a GET wants its answer stands in the query, which is not told here; only what is small is asked for so.
        if message.ByteSize() <= LARGE_BYTES or context.http_method != "POST":
            return message
        headers = context.request_headers
        codec = self._codecs["json" if "json" in headers.get("content-type", "") else "proto"]
        compressed = any("gzip" in headers.get(name, "") for name in _ACCEPTING)

        def write() -> PreparedBytes:
            data = PreparedBytes(codec.encode(message))
            if compressed:
                data.compressed = _compress(data)
            return data

        return Prepared(await off_the_loop(write))


def _compress(data: bytes) -> bytes:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress(data) + packer.flush()
