"""`order-worker check`: whether the gateway answers and takes the token."""

import asyncio

import typer

from common.exit_codes import CommandError, Exit
from common.output import say
from common.settings import SettingsError
from worker.cli.output import warn
from worker.cli.setup import read_settings
from worker.clock import SystemEntropy
from worker.gateway.client import GatewayClient, open_channel
from worker.gateway.port import BAD_CREDENTIALS, Refused, Unreachable
from worker.main import NO_SITE
from worker.settings import WorkerSettings
from worker.sites.port import sites_that_can_order
from worker.sites.registry import build_sites


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(check)


def check() -> None:
    """Connect to the gateway with the token, and say what is wrong. Changes nothing, there or here."""
    settings = read_settings()
    if settings.gateway is None:
        raise CommandError("RAKUTEN_ORDER_GATEWAY_URL is empty: there is no gateway to work for", Exit.USAGE)
    address = settings.gateway.address
    try:
        asyncio.run(_ask_gateway(settings))
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    except Unreachable as error:
        raise CommandError(f"the gateway at {address} cannot be reached: {error}", Exit.UNREACHABLE) from error
    except Refused as refusal:
        raise CommandError(f"{BAD_CREDENTIALS} ({refusal.reason_name}): {refusal}", Exit.DENIED) from refusal
    say(f"the gateway at {address} answers and takes the token")
    if not asyncio.run(_can_order(settings)):
        warn(NO_SITE)


async def _can_order(settings: WorkerSettings) -> bool:
    sites = build_sites(settings, settings.accounts)
    for site in sites:
        await site.close()
    return bool(sites_that_can_order(sites))


async def _ask_gateway(settings: WorkerSettings) -> None:
    """Return if the gateway answers and takes the token. Raises Unreachable, Refused and SettingsError."""
    entropy = SystemEntropy()
    channel = open_channel(settings)
    try:
        gateway = GatewayClient(
            channel,
            worker_id=settings.worker_id,
            session_id=entropy.token(),
            journal_id=entropy.token(),
            token=settings.token.get_secret_value() if settings.token else None,
        )
        await gateway.probe()
    finally:
        await channel.close()
