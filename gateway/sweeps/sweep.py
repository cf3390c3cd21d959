"""The one shape of a sweep, and what runs it."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Final, Protocol

from gateway.store.port import StoreUnavailableError

LEAST_INTERVAL: Final = 0.01
"""However short an interval is, the gateway serves in between."""

_log = logging.getLogger(__name__)


class Sweep(Protocol):
    """Something to do every `interval` seconds."""

    @property
    def name(self) -> str:
        """The sweep's name, for the log."""
        ...

    @property
    def interval(self) -> float:
        """Seconds from the end of one run to the start of the next."""
        ...

    async def run_once(self) -> Mapping[str, int]:
        """Do it once and return what was done, counted. Raises StoreUnavailableError."""
        ...


async def run_sweep(sweep: Sweep) -> None:
    """Run a sweep until cancelled; a fault is logged and the sweep goes on."""
    while True:
        try:
            counts = await sweep.run_once()
        except StoreUnavailableError as error:
            _log.warning("sweep=%s could not run: %s", sweep.name, error)
        except Exception:  # noqa: BLE001 - a watchman must outlive what it watches
            _log.exception("sweep=%s failed", sweep.name)
        else:
            if any(counts.values()):
                _log.info("sweep=%s %s", sweep.name, " ".join(f"{name}={count}" for name, count in counts.items()))
        await asyncio.sleep(max(sweep.interval, LEAST_INTERVAL))
