"""Looking at a worker's set-up before it runs: the settings in effect, and whether the gateway takes it."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr
from pydantic_settings import DotEnvSettingsSource

from common.settings import PREFIX
from worker.clock import SystemEntropy
from worker.gateway.client import GatewayClient, open_channel
from worker.settings import WorkerSettings


def effective_settings(settings: WorkerSettings) -> Iterator[tuple[str, str, str]]:
    """Every setting as its name, its value (secrets masked) and where it comes from."""
    environment = {name.upper() for name, value in os.environ.items() if value}
    in_file = {name.upper() for name, value in DotEnvSettingsSource(WorkerSettings).env_vars.items() if value}
    for field in WorkerSettings.model_fields:
        name = f"{PREFIX}{field.upper()}"
        source = "environment" if name in environment else ".env" if name in in_file else "default"
        yield name, _shown(getattr(settings, field)), source


def _shown(value: object) -> str:
    if isinstance(value, SecretStr):
        return "(set)"
    if isinstance(value, str) and "://" in value and "@" in (place := urlsplit(value).netloc):
        return value.replace(place, f"(set)@{place.rpartition('@')[2]}")
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else value.as_posix() if isinstance(value, Path) else str(value)


async def ask_gateway(settings: WorkerSettings) -> None:
    """Returns if the gateway answers and takes the token; nothing changes there. Raises Unreachable, Refused and
    SettingsError.
    """
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
