"""`order-gateway config`: the settings in effect, and where each comes from."""

import os
from collections.abc import Iterator
from enum import Enum
from typing import Any

import typer
from pydantic import SecretStr
from pydantic_settings import BaseSettings, DotEnvSettingsSource

from common.escapes import escape_controls
from common.exit_codes import CommandError, Exit
from common.output import print_json
from common.settings import PREFIX, SettingsError
from common.tables import print_table
from common.unknown_settings import unknown_settings
from gateway.cli.options import JsonOption
from gateway.cli.settings import load_command_settings
from gateway.settings import load_settings


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(config)


def config(as_json_: JsonOption = False) -> None:
    """Show every setting in effect here, and where it comes from. Tokens are never shown.

    Nonsense is refused as `serve` refuses it; what works but is probably not meant goes to standard error.
    """
    # The servers take long to load, and no other command needs them.
    from gateway.people import tell_people  # noqa: PLC0415
    from gateway.servers import certificates_of  # noqa: PLC0415

    try:
        settings = load_settings()
        certificates_of(settings)
        tell_people(settings)
        commands = load_command_settings()
        shown = dict(_settings(commands)) | dict(_settings(settings))
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    for line in (*unknown_settings(), *commands.unusual(), *settings.unusual()):
        typer.echo(escape_controls(f"order-gateway: warning: {line}"), err=True)
    if as_json_:
        print_json({name: {"value": value, "from": source} for name, (value, source) in shown.items()})
    else:
        print_table(("setting", "value", "from"), ((name, *rest) for name, rest in shown.items()), "no settings")


def _settings(settings: BaseSettings) -> Iterator[tuple[str, tuple[str, str]]]:
    environment = {name.upper() for name, value in os.environ.items() if value}
    in_file = {name.upper() for name in DotEnvSettingsSource(type(settings)).env_vars}
    for field in type(settings).model_fields:
        name = f"{PREFIX}{field.upper()}"
        source = "environment" if name in environment else ".env" if name in in_file else "default"
        yield name, (_text(getattr(settings, field)), source)


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, SecretStr):
        return "(set)"
    if isinstance(value, tuple):
        if value and all(isinstance(part, SecretStr) for part in value):
            return f"({len(value)} set)"
        return ",".join(str(part) for part in value)
    if isinstance(value, Enum):
        return str(value.value)
    return f"{value:g}" if isinstance(value, float) else str(value)
