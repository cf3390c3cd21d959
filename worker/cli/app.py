"""The command `order-worker`, put together."""

import typer

from common.output import standard_output
from common.program import Program, add_version
from worker.cli.commands import check, config, evidence, journal, reclaim, run, sandbox
from worker.cli.options import EPILOG

app = typer.Typer(
    name="order-worker",
    cls=Program,
    help="The local worker: takes one order at a time from the gateway, buys it, keeps the evidence, reports.\n\n"
    "Settings come from the environment and from .env in the current folder, prefix RAKUTEN_.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
add_version(app, "order-worker")

for part in (config, check, run, sandbox, reclaim, journal, evidence):
    part.add_to(app)


def main() -> None:
    """Run the command line."""
    with standard_output("order-worker"):
        app(prog_name="order-worker")
