"""The whole gateway as `order-gateway serve` wires it, in the test's event loop, under a clock that the test moves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.main import Ports, run_gateway
from gateway.settings import Settings
from gateway.tracing import Tracing
from tests.gateway.support import dump
from tests.gateway.support.databases import is_postgres, make_ready, settings_of
from tests.gateway.support.first_sweeps import BY_DEFAULT, noted_first_sweeps
from tests.gateway.support.grpc_api import GrpcApi, connected
from tests.gateway.support.manual_time import ManualTime


def make_settings(folder: Path, **settings: Any) -> Settings:
    """Settings for a test: its own folder, free ports, no sweep in between, nothing from a .env."""
    defaults: dict[str, Any] = {
        "sites": ("rakuten", "sandbox"),
        **settings_of(folder / "gateway.db"),
        "backup_dir": folder / "backups",
        "gateway_grpc_port": 0,
        "gateway_port": 0,
        "sweep_interval_seconds": BY_DEFAULT,
    }
    return Settings(_env_file=None, **(defaults | settings))


FOR_EVER = f"""
CREATE FUNCTION lead_for_ever() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN NEW.term_ends_us = {2**62}; RETURN NEW; END$$
"""
ON_EACH_RENEWAL = """
CREATE TRIGGER lead_for_ever BEFORE INSERT OR UPDATE ON sweep_leader FOR EACH ROW EXECUTE FUNCTION lead_for_ever()
"""
LEADS = """
INSERT INTO sweep_leader (one, gateway_id, term_ends_us) SELECT 1, gateway_id, 0 FROM gateways
ON CONFLICT (one) DO UPDATE SET term_ends_us = 0
"""


@dataclass
class RunningGateway:
    """A gateway that serves. `api` is a client without a token, or with the first of `api_token`."""

    path: Path
    time: ManualTime
    port: int
    http_port: int
    api: GrpcApi
    stop: asyncio.Event
    ended: asyncio.Task[None]

    def client(self, token: str | None = None) -> Any:
        """Another client, with a connection of its own: an async context manager."""
        return connected(self.port, token)

    def rows(self, sql: str, *parameters: Any) -> list[dict[str, Any]]:
        return dump.rows(self.path, sql, *parameters)

    def dump(self) -> dict[str, list[tuple[Any, ...]]]:
        return dump.dump(self.path)

    def lead_on(self) -> None:
        """Let the gateway lead the sweeps from here on, however far the test moves the time in one go.

        Its own renewals, every five seconds, would end the term as the time then is.
        """
        if is_postgres():
            for statement in (FOR_EVER, ON_EACH_RENEWAL, LEADS):
                dump.execute(self.path, statement)

    def pause(self, site: str = "", why: str = "the card is being replaced") -> None:
        """Pause dispatch, from outside."""
        at = "2026-11-29T15:58:22.123456Z"
        dump.execute(self.path, "INSERT INTO pauses VALUES (?, ?, 'operator', ?)", site, at, why)


@asynccontextmanager
async def running_gateway(
    folder: Path,
    time: ManualTime | None = None,
    token: str | None = None,
    tracing: Tracing | None = None,
    **settings: Any,
) -> AsyncIterator[RunningGateway]:
    """Start a gateway; stop it and await its end on the way out."""
    time = time or ManualTime()
    wanted = make_settings(folder, **settings)
    path = folder / "gateway.db" if wanted.gateway_db_url is not None else wanted.gateway_db_path
    make_ready(path)
    stop = asyncio.Event()
    ready: asyncio.Future[Ports] = asyncio.get_running_loop().create_future()
    ended = asyncio.create_task(run_gateway(wanted, stop, ready.set_result, time.machine(), tracing))
    with noted_first_sweeps() as swept:
        await asyncio.wait({ended, ready}, return_when=asyncio.FIRST_COMPLETED)
    if ended.done():
        ended.result()
    try:
        ports = ready.result()
        async with asyncio.timeout(30):
            for first in swept:
                await first.wait()
        async with connected(ports.grpc, token) as api:
            yield RunningGateway(path, time, ports.grpc, ports.http, api, stop, ended)
    finally:
        stop.set()
        await asyncio.wait_for(ended, 30)
