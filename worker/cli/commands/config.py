"""`order-worker config`: the settings in effect, and where each comes from."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import typer
from pydantic import SecretStr
from pydantic_settings import DotEnvSettingsSource

from common.output import print_json
from common.settings import PREFIX
from common.tables import print_table
from common.unknown_settings import unknown_settings
from worker.cli.options import JsonOption
from worker.cli.output import warn
from worker.cli.setup import read_settings
from worker.settings import WorkerSettings


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(config)


def config(as_json: JsonOption = False) -> None:
    """Show every setting in effect here, and where it comes from. Tokens are never shown.

    Warns of each RAKUTEN_* name that is no setting.
    """
    settings = read_settings()
    rows = list(_effective(settings))
    for line in (*unknown_settings(), *settings.unusual()):
        warn(f"order-worker: warning: {line}")
    if as_json:
        print_json({name: {"value": value, "from": source} for name, value, source in rows})
        return
    print_table(("setting", "value", "from"), rows, "no settings")


def _effective(settings: WorkerSettings) -> Iterator[tuple[str, str, str]]:
    """Yield every setting as its name, its value (secrets masked) and where it comes from."""
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
