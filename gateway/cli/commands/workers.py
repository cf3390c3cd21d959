"""`order-gateway workers`."""

from typing import Annotated

import typer
from ordergateway.v1 import operations_pb2

from common.output import print_json, say
from common.tables import print_table
from gateway.cli.client import connected
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import GatewayOption, JsonOption, ReasonOption
from gateway.cli.output import list_as_json, span, when

workers = typer.Typer(help="Look at the workers heard of.", no_args_is_help=True)


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(workers, name="workers", epilog=EPILOG)


@workers.command("list")
def list_workers(gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """List the workers, and when each was last heard of."""
    with connected(gateway) as client:
        found = client.call(client.operations.ListWorkers, operations_pb2.ListWorkersRequest()).workers
    if as_json_:
        list_as_json("workers", found)
        return
    print_table(
        ("worker", "last heard of", "ago", "waited at", ""),
        (
            (
                worker.worker_id,
                when(worker, "last_seen_at"),
                span(worker.last_seen_ago),
                worker.gateway,
                "offline" * worker.offline,
            )
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
