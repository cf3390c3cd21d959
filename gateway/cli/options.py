"""Arguments and options that several commands share."""

from typing import Annotated

import typer

GatewayOption = Annotated[
    str | None,
    typer.Option(
        "--gateway", metavar="URL", help="grpc://host:port or grpcs://host:port; default RAKUTEN_GATEWAY_URL."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
LimitOption = Annotated[int, typer.Option("--limit", min=1, max=100_000, help="How many to show at most.")]
ReasonOption = Annotated[
    str, typer.Option("--reason", metavar="TEXT", help="Why; it goes into the history with your name.")
]
TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="The task's task_id.")]
SiteOption = Annotated[str, typer.Option("--site", help="Only of this site.")]
