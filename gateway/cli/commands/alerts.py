"""`order-gateway alerts`."""

from typing import Annotated

import typer
from ordergateway.v1 import operations_pb2

from common.output import print_json, say
from common.tables import print_table
from gateway.cli.client import connected
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import GatewayOption, JsonOption, LimitOption, ReasonOption, choice
from gateway.cli.output import as_json, list_as_json, number_of, when, word

alerts = typer.Typer(help="See what a person should look at, and say what was dealt with.")
KindOption = Annotated[str | None, choice("--kind", operations_pb2.AlertKind, "Only of this kind.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(alerts, name="alerts", epilog=EPILOG)


@alerts.callback(invoke_without_command=True)
def list_alerts(
    context: typer.Context,
    kind: KindOption = None,
    cleared_too: Annotated[bool, typer.Option("--all", help="Cleared ones too.")] = False,
    limit: LimitOption = 50,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Show the alerts that stand, the newest first."""
    if context.invoked_subcommand is not None:
        return
    request = operations_pb2.ListAlertsRequest(
        include_cleared=cleared_too, kind=number_of(operations_pb2.AlertKind, kind)
    )
    with connected(gateway) as client:
        found = client.pages(client.operations.ListAlerts, request, "alerts", limit)
    if as_json_:
        list_as_json("alerts", found)
        return
    print_table(
        ("alert", "kind", "about", "raised", "cleared", "message"),
        (
            (
                str(alert.alert_id),
                word(operations_pb2.AlertKind, alert.kind),
                alert.subject,
                when(alert, "raised_at"),
                when(alert, "cleared_at"),
                alert.message,
            )
            for alert in found
        ),
        "no alerts" if cleared_too else "no alert stands",
    )


@alerts.command()
def clear(
    alert: Annotated[int, typer.Argument(metavar="ALERT", help="The number that `order-gateway alerts` shows.")],
    reason: ReasonOption,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Say that something that happened was dealt with. Alerts of a condition clear themselves."""
    request = operations_pb2.ClearAlertRequest(alert_id=alert, reason=reason)
    with connected(gateway) as client:
        cleared = client.call(client.operations.ClearAlert, request).alert
    if as_json_:
        print_json(as_json(cleared))
    else:
        say(f"alert {cleared.alert_id} is cleared")
