"""A long poll that gives nothing to a client that has gone (docs/rest.md#lease).

Nothing tells an ASGI handler by itself that its client has gone: whoever waits has to watch for the disconnect.
"""

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from gateway.api.auth.admission import Admission
from gateway.api.call import Call
from gateway.api.rest.envelope import failure, success

L_co = TypeVar("L_co", covariant=True)

_TURNS: Final = 3
"""Turns of the event loop after which a connection's end that has come in is known: select, read, connection lost."""


class Handover(Protocol[L_co]):
    """A lease that is given back unless it is said to be handed over."""

    @property
    def lease(self) -> L_co:
        """The lease."""
        ...

    def mark_delivered(self) -> None:
        """Say that the transport has it."""
        ...


class LongPoll(Response):
    """An answer that waits. `wait` gets a future that is done when the client has gone, `render` writes the lease."""

    def __init__(
        self,
        wait: "Callable[[asyncio.Future[Any]], AbstractAsyncContextManager[Handover[Any] | None]]",
        render: Callable[[Any], Any],
        admission: Admission,
        call: Call,
        where: str,
    ) -> None:
        self._wait = wait
        self._render = render
        self._admission = admission
        self._call = call
        self._where = where
        super().__init__()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wait, and answer if anybody is still there."""
        gone = asyncio.create_task(_disconnected(receive))
        try:
            await _settled()
            try:
                if not gone.done():
                    with self._admission.waiting(self._call):
                        await self._serve(gone, scope, receive, send)
            except Exception as error:  # noqa: BLE001 - told to the caller, and logged if it is a fault
                await failure(error, self._where)(scope, receive, send)
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone

    async def _serve(self, gone: "asyncio.Task[None]", scope: Scope, receive: Receive, send: Send) -> None:
        async with self._wait(gone) as handover:
            if handover is None:
                answer = success(None)
            else:
                answer = success(self._render(handover.lease))
                await _settled()
                if gone.done():
                    return
                handover.mark_delivered()
            await answer(scope, receive, send)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _settled() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
