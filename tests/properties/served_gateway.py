"""A whole gateway on real sockets for tests that are not asynchronous: its event loop runs while a call does."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from gateway.domain.refusals import Reason
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime

T = TypeVar("T")


class ServedGateway:
    """Serves one database file; may be restarted on it."""

    def __init__(self, folder: Path, time: ManualTime, **settings: Any) -> None:
        self._folder, self._time = folder, time
        self._runner = asyncio.Runner()
        self._start(settings)

    @property
    def api(self) -> GrpcApi:
        return self.running.api

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(call)

    def restart(self, meanwhile: Callable[[], None], **settings: Any) -> None:
        self.run(self._serving.aclose())
        meanwhile()
        self._start(settings)

    def close(self) -> None:
        self.run(self._serving.aclose())
        self._runner.close()

    def _start(self, settings: dict[str, Any]) -> None:
        self._serving = AsyncExitStack()
        serving = running_gateway(self._folder, self._time, **settings)
        self.running: RunningGateway = self.run(self._serving.enter_async_context(serving))
        self.run(self._behind_the_sweeps_of_the_start())

    async def _behind_the_sweeps_of_the_start(self) -> None:
        """Have something written, which comes after what the sweeps write first."""
        try:
            await self.api.cancel("nothing-of-this-name")
        except RefusedCallError as error:
            assert error.reason is Reason.TASK_NOT_FOUND  # noqa: PT017 -- the call is there to be over
