"""The way from a gateway to its PostgreSQL server, which can be cut in the very moment of a COMMIT."""

import asyncio

from tests.faults.proxy import FaultyProxy, Mode, Target

_COMMIT = b"COMMIT\0"
_ON_ITS_WAY_SECONDS = 0.005


class DatabaseProxy(FaultyProxy):
    """Beside the weather it waits for the next COMMIT, where that is wanted, and keeps its answer from the gateway."""

    def __init__(self, *targets: Target) -> None:
        super().__init__(*targets)
        self._at_commit: tuple[Mode, bool] | None = None
        self._struck = asyncio.Event()

    def set(self, mode: Mode) -> None:
        """See FaultyProxy. When bytes pass again, connections end that have lost some: TCP never leaves a gap."""
        if self._mode in (Mode.DROP_ANSWERS, Mode.BLACK_HOLE) and mode is Mode.PASS:
            super().set(Mode.CUT)
        super().set(mode)

    def at_commit(self, mode: Mode, *, made: bool) -> None:
        """At the next COMMIT the weather changes to `mode`; `made` says whether the server still gets that COMMIT."""
        self._struck.clear()
        self._at_commit = mode, made

    async def has_struck(self, seconds: float) -> bool:
        """Waits for that COMMIT; False if none comes in so many seconds, and then none is waited for any more."""
        try:
            async with asyncio.timeout(seconds):
                return await self._struck.wait()
        except TimeoutError:
            self._at_commit = None
            return False

    def strikes(self, data: bytes) -> bool:
        """See FaultyProxy."""
        if self._at_commit is None or _COMMIT not in data:
            return False
        (mode, made), self._at_commit = self._at_commit, None
        self._struck.set()
        if made:
            self.set(Mode.DROP_ANSWERS)
            asyncio.get_running_loop().call_later(_ON_ITS_WAY_SECONDS, self.set, mode)
            return False
        self.set(mode)
        return True
