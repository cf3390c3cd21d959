"""`order-gateway config`: the settings in effect, and where each comes from."""

import typer

from common.escapes import escape_controls
from common.exit_codes import CommandError, Exit
from common.output import print_json
from common.settings import SettingsError
from common.shown_settings import shown_settings
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
        shown = {each.name: each for each in (*shown_settings(commands), *shown_settings(settings))}
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    for line in (*unknown_settings(), *commands.unusual(), *settings.unusual()):
        typer.echo(escape_controls(f"order-gateway: warning: {line}"), err=True)
    if as_json_:
        print_json({name: {"value": each.value, "from": each.source} for name, each in shown.items()})
    else:
        rows = ((each.name, each.value, each.source) for each in shown.values())
        print_table(("setting", "value", "from"), rows, "no settings")
