"""The request of a gRPC call, read by the gateway itself, so that who calls is known before anything is waited for.

Handlers are registered as taking a stream of requests, whatever the contract says: grpc.aio calls those at once, and
those of a single request only when it has come, which a client that never sends it can put off for ever.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, TypeAlias

import grpc

from gateway.domain.refusals import Reason, Refusal, RefusedError, invalid

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]

REQUEST_SECONDS: Final = 30.0
"""How long a client may take to send its request, as over HTTP."""


class Places:
    """Bounds how many calls do something at once. Who finds no place is refused and not kept waiting."""

    def __init__(self, most: int, doing: str) -> None:
        """`doing` completes the sentence "256 calls are …"."""
        self._most = most
        self._doing = doing
        self._taken = 0

    @contextmanager
    def place(self) -> Iterator[None]:
        """Hold a place. Raises RefusedError TOO_MANY if all are taken."""
        if self._taken >= self._most:
            why = f"{self._most:,} calls are {self._doing}, which is the limit; come back later"
            raise RefusedError(Refusal(Reason.TOO_MANY, why, retry_after=timedelta(seconds=1)))
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1


async def read_request(context: Context) -> bytes:
    """Return the bytes of the call's one request. Raises RefusedError INVALID_FIELD if it does not come."""
    data = await _read(context)
    if data is None:
        raise invalid("request", "the call ended without one")
    return data


async def read_requests(context: Context) -> AsyncIterator[bytes]:
    """Yield the bytes of each request until the client sends no more. Raises RefusedError INVALID_FIELD."""
    while (data := await _read(context)) is not None:
        yield data


async def _read(context: Context) -> bytes | None:
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            data = await context.read()
    except TimeoutError:
        raise invalid("request", f"it did not come within {REQUEST_SECONDS:g} seconds") from None
    return data if isinstance(data, bytes) else None
