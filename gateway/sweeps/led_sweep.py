"""A sweep that one gateway runs for all, where several share a database."""

from collections.abc import Awaitable, Callable, Mapping

from gateway.sweeps.sweep import Sweep


class LedSweep:
    """Runs another sweep while this gateway leads."""

    def __init__(self, sweep: Sweep, leads: Callable[[], Awaitable[bool]]) -> None:
        self._sweep = sweep
        self._leads = leads
        self.name = sweep.name
        self.interval = sweep.interval

    async def run_once(self) -> Mapping[str, int]:
        """Do it once, if it is this gateway's turn."""
        return await self._sweep.run_once() if await self._leads() else {}
