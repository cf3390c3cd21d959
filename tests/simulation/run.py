"""One run: a seed becomes a world of one of the kinds, its faults, and what the auditor says."""

import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

import gateway.dispatch.dispatcher
import gateway.sweeps.release
import worker.gateway.outbox
import worker.orders.loop
import worker.orders.permit
from tests.simulation.gateways.world import SharedWorld
from tests.simulation.layout import World
from tests.simulation.template import MEMORY
from tests.simulation.world import Result, SimulatedWorld


def simulate(seed: int, world: World = World.ALONE) -> Result:
    """Runs one seed."""
    parent = MEMORY if MEMORY.is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="simulation-", dir=parent))
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with _pace():
            made = SharedWorld if world is World.GATEWAYS else SimulatedWorld
            return made(seed, folder, world).run()
    finally:
        logging.disable(disabled)
        shutil.rmtree(folder)


@contextmanager
def _pace() -> Iterator[None]:
    """Polls that only stand behind lost hints, and patience of minutes, are brought to the scale of the policy."""
    with ExitStack() as stack:
        for module, name, seconds in (
            (gateway.dispatch.dispatcher, "POLL_SECONDS", 5.0),
            (gateway.sweeps.release, "POLL_SECONDS", 5.0),
            (worker.orders.loop, "RECLAIM_POLL", 4.0),
            (worker.orders.loop, "MOST_DELAY", 2.0),
            (worker.orders.loop, "DISK_DELAY", 10.0),
            (worker.gateway.outbox, "MOST_DELAY", 10.0),
            (worker.orders.permit, "PERMIT_CALL", 5.0),
            (worker.orders.permit, "PERMIT_PATIENCE", 8.0),
        ):
            stack.enter_context(patch.object(module, name, seconds))
        yield
