"""`order-gateway pause`, `resume`, `workers`."""

from collections.abc import Iterable
from typing import Annotated

import typer
from ordergateway.v1 import operations_pb2

from common.output import say
from common.tables import print_table
from gateway.cli.client import connected
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import GatewayOption, JsonOption, ReasonOption
from gateway.cli.output import list_as_json, print_json, span, when

workers = typer.Typer(help="Look at the workers heard of.", no_args_is_help=True)

SiteArgument = Annotated[str, typer.Argument(metavar="SITE", help="The site; without it all sites.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(pause)
    app.command()(resume)
    app.add_typer(workers, name="workers", epilog=EPILOG)


def pause(
    reason: ReasonOption, site: SiteArgument = "", gateway: GatewayOption = None, as_json_: JsonOption = False
) -> None:
    """Stop dispatch: no lease and no submit permit is granted. Orders already clicked go on."""
    request = operations_pb2.PauseDispatchRequest(site=site, reason=reason)
    with connected(gateway) as client:
        _print_pauses(client.call(client.operations.PauseDispatch, request).pauses, as_json_)


def resume(
    reason: ReasonOption, site: SiteArgument = "", gateway: GatewayOption = None, as_json_: JsonOption = False
) -> None:
    """Start dispatch again. Without a site the pause of all sites ends; pauses of single sites stay."""
    request = operations_pb2.ResumeDispatchRequest(site=site, reason=reason)
    with connected(gateway) as client:
        _print_pauses(client.call(client.operations.ResumeDispatch, request).pauses, as_json_)


@workers.command("list")
def list_workers(gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """List the workers, and when each was last heard of."""
    with connected(gateway) as client:
        found = client.call(client.operations.ListWorkers, operations_pb2.ListWorkersRequest()).workers
    if as_json_:
        list_as_json("workers", found)
        return
    print_table(
        ("worker", "last heard of", "ago", ""),
        (
            (worker.worker_id, when(worker, "last_seen_at"), span(worker.last_seen_ago), "offline" * worker.offline)
            for worker in found
        ),
        "no worker has called yet",
    )


@workers.command()
def forget(
    worker: Annotated[str, typer.Argument(metavar="WORKER", help="The worker's name, as `workers list` shows it.")],
    reason: ReasonOption,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Forget a worker that was retired on purpose, so that it no longer counts as offline."""
    request = operations_pb2.ForgetWorkerRequest(worker_id=worker, reason=reason)
    with connected(gateway) as client:
        client.call(client.operations.ForgetWorker, request)
    if as_json_:
        print_json({})
    else:
        say(f"worker {worker} is forgotten")


def _print_pauses(pauses: Iterable[operations_pb2.Pause], as_json_: bool) -> None:
    if as_json_:
        list_as_json("pauses", pauses)
        return
    print_table(
        ("paused", "since", "by", "why"),
        ((pause.site or "all sites", when(pause, "paused_at"), pause.paused_by, pause.reason) for pause in pauses),
        "dispatch is not paused",
    )
