"""`order-gateway notify`."""

import typer
from ordergateway.v1 import operations_pb2

from common.exit_codes import Exit
from common.output import print_json
from common.tables import print_table
from gateway.cli.client import connected
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import GatewayOption, JsonOption
from gateway.cli.output import as_json

notify = typer.Typer(help="Try the channels through which people are told of alerts.", no_args_is_help=True)

_SECONDS = 60.0


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(notify, name="notify", epilog=EPILOG)


@notify.callback()
def _group() -> None:
    """Try the channels through which people are told of alerts."""


@notify.command("test")
def send_test(gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """Send a test message through every channel, and say what each made of it. Ends with 1 if one has not taken it."""
    with connected(gateway) as client:
        request = operations_pb2.SendTestNotificationRequest()
        answer = client.call(client.operations.SendTestNotification, request, _SECONDS)
    if as_json_:
        print_json(as_json(answer))
    else:
        print_table(
            ("channel", "taken", "told"),
            ((result.channel, "yes" if result.taken else "no", result.told) for result in answer.results),
            "no channel",
        )
    if not all(result.taken for result in answer.results):
        raise typer.Exit(Exit.FAULT)
