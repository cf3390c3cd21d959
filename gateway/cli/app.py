"""The program's commands, put together."""

import typer

from common.output import standard_output
from common.program import Program, add_version
from gateway.cli.commands import (
    alerts,
    approvals,
    backup,
    budgets,
    callbacks,
    catalog,
    config,
    conformance,
    copy,
    database,
    decide,
    decisions,
    events,
    export,
    health,
    migrate,
    notify,
    pause,
    proposals,
    queries,
    serve,
    statement,
    tasks,
    workers,
)
from gateway.cli.exit_codes import EPILOG

app = typer.Typer(
    name="order-gateway",
    cls=Program,
    help="A lease queue for purchases that must never happen twice, and a mirror of their states.\n\n"
    "`serve` runs the gateway. The other commands talk to a running one: --gateway or RAKUTEN_ORDER_GATEWAY_URL says "
    "where, RAKUTEN_OPERATOR_TOKEN (or RAKUTEN_API_TOKEN; to look only, RAKUTEN_VIEWER_TOKEN) lets them in. Start with "
    "`order-gateway decisions`.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
add_version(app, "order-gateway")

for part in (
    serve, health, events, alerts, tasks, export, decide, decisions, approvals, proposals, pause, budgets, statement,
    workers, queries, catalog, callbacks, notify, backup, migrate, copy, database, config,
    conformance,
):  # fmt: skip
    part.add_to(app)


def main() -> None:
    """Run the command line."""
    with standard_output("order-gateway"):
        app(prog_name="order-gateway")
