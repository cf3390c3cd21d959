"""gRPC's health service, which asks for no token: whatever is sent to it is small, short, and bounded in number."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health_pb2

from gateway.api.grpc.incoming import Context, StrangersIntake, too_many
from gateway.domain.refusals import Reason, Refusal, RefusedError, invalid

MAX_REQUEST_BYTES: Final = 256
"""The largest request: a service's name, of which the contract's longest has 40 letters."""

MAX_READ: Final = 32
"""How many requests may be on their way at once."""

MAX_WATCHES: Final = 64
"""How many watches may be open; one more, and the oldest ends."""

WATCH_SECONDS: Final = 600.0
"""How long a watch lasts; a client that wants to know more begins another."""

_Status = health_pb2.HealthCheckResponse


class Health:
    """Answers `Check` and `Watch` about the services of this port."""

    def __init__(self) -> None:
        self._intake = StrangersIntake(MAX_READ)
        self._watches: dict[asyncio.Event, None] = {}
        self._changed = asyncio.Event()
        self._serving: frozenset[str] = frozenset()
        self._leaving = False

    def serve(self, names: frozenset[str]) -> None:
        """Say of these services that they serve; "" is the whole."""
        self._serving = names

    def leave(self) -> None:
        """Say from here on that nothing serves, to those who watch at once."""
        self._leaving = True
        for watch in self._watches:
            watch.set()

    def end_the_late(self) -> None:
        """To be called once a second: end the requests that do not come."""
        self._intake.end_the_late()

    async def check(self, context: Context) -> bytes:
        """Answer a check. Raises RefusedError, or aborts with NOT_FOUND for a service that is not here."""
        name = await self._name(context)
        if name not in self._serving:
            await context.abort(grpc.StatusCode.NOT_FOUND)
        return self._told(name)

    async def watch(self, context: Context) -> AsyncGenerator[bytes]:
        """Answer a watch: how it is now, and once more when the gateway stops, which ends it. Raises RefusedError."""
        name = await self._name(context)
        if len(self._watches) >= MAX_WATCHES:
            oldest = next(iter(self._watches))
            del self._watches[oldest]
            oldest.set()
        woken = asyncio.Event()
        self._watches[woken] = None
        try:
            yield self._told(name)
            async with asyncio.timeout(WATCH_SECONDS):
                await woken.wait()
            if not self._leaving:
                raise too_many(f"{MAX_WATCHES} newer watches are open, which is the limit; come back later")
            yield self._told(name)
        except TimeoutError:
            return
        finally:
            self._watches.pop(woken, None)

    async def _name(self, context: Context) -> str:
        data = await self._intake.read(context)
        if len(data) > MAX_REQUEST_BYTES:
            why = f"a health request is at most {MAX_REQUEST_BYTES} bytes, this one has {len(data):,}"
            raise RefusedError(Refusal(Reason.TOO_LARGE, why))
        try:
            return health_pb2.HealthCheckRequest.FromString(data).service
        except DecodeError:
            raise invalid("request", "is no valid message of this method") from None

    def _told(self, name: str) -> bytes:
        status = _Status.NOT_SERVING if self._leaving else _Status.SERVING
        return _Status(status=status if name in self._serving else _Status.SERVICE_UNKNOWN).SerializeToString()
