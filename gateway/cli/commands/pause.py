"""`order-gateway pause` and `resume`."""

from collections.abc import Iterable
from typing import Annotated

import typer
from ordergateway.v1 import operations_pb2

from common.escapes import escape_controls
from common.output import say
from common.tables import print_table
from gateway.cli.client import Client, connected
from gateway.cli.options import GatewayOption, JsonOption, ReasonOption
from gateway.cli.output import list_as_json, when

SiteArgument = Annotated[str, typer.Argument(metavar="SITE", help="The site; without it all sites.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(pause)
    app.command()(resume)


def pause(
    reason: ReasonOption, site: SiteArgument = "", gateway: GatewayOption = None, as_json_: JsonOption = False
) -> None:
    """Stop dispatch: no lease and no submit permit is granted. Orders already clicked go on.

    A pause that stands stays as it is, with who paused and why; a warning tells of it.
    """
    request = operations_pb2.PauseDispatchRequest(site=site, reason=reason)
    with connected(gateway) as client:
        before = _standing(client, site)
        pauses = client.call(client.operations.PauseDispatch, request).pauses
    if before is not None:
        line = f"{_told(before)}, and stays as it was: ask {before.paused_by} before you resume"
        typer.echo(escape_controls(f"order-gateway: warning: {line}"), err=True)
    _print_pauses(pauses, as_json_)


def resume(
    reason: ReasonOption, site: SiteArgument = "", gateway: GatewayOption = None, as_json_: JsonOption = False
) -> None:
    """Start dispatch again, and say whose pause that was. Without a site the pause of all sites ends; pauses of single
    sites stay.
    """
    request = operations_pb2.ResumeDispatchRequest(site=site, reason=reason)
    with connected(gateway) as client:
        before = _standing(client, site)
        pauses = client.call(client.operations.ResumeDispatch, request).pauses
    if before is not None and not as_json_:
        say(f"resumed: {_told(before)}")
    _print_pauses(pauses, as_json_)


def _standing(client: Client, site: str) -> operations_pb2.Pause | None:
    """The pause of that site ("": of all sites), if there is one."""
    pauses = client.call(client.operations.GetHealth, operations_pb2.GetHealthRequest()).pauses
    return next((pause for pause in pauses if pause.site == site), None)


def _told(pause: operations_pb2.Pause) -> str:
    return f"{pause.paused_by} paused {pause.site or 'all sites'} at {when(pause, 'paused_at')} ({pause.reason})"


def _print_pauses(pauses: Iterable[operations_pb2.Pause], as_json_: bool) -> None:
    if as_json_:
        list_as_json("pauses", pauses)
        return
    print_table(
        ("paused", "since", "by", "why"),
        ((pause.site or "all sites", when(pause, "paused_at"), pause.paused_by, pause.reason) for pause in pauses),
        "dispatch is not paused",
    )
