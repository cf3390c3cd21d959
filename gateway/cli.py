"""The command `order-gateway`.

Exit codes: 0 stopped as asked, 1 a fault while running, 2 wrong usage or settings, 3 the database cannot be used.
"""

import asyncio
import logging
import signal
from importlib.metadata import version
from typing import Annotated, NoReturn

import typer

from gateway.logs import set_up_logs
from gateway.main import FatalStoreError, Ports, run_gateway
from gateway.settings import Settings, SettingsError, load_settings
from gateway.store.sqlite.schema import DatabaseUnusableError

EXIT_FAULT = 1
EXIT_SETTINGS = 2
EXIT_DATABASE = 3

app = typer.Typer(
    help="A lease queue for purchases that must never happen twice, and a mirror of their states.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"order-gateway {version('order-gateway')}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say which.")
    ] = False,
) -> None:
    """Take options that stand before a command."""


@app.command()
def serve() -> None:
    """Run the gateway until SIGTERM or Ctrl-C.

    Settings come from the environment and from .env (see .env.example); the ones to begin with are RAKUTEN_SITES,
    RAKUTEN_API_TOKEN and RAKUTEN_GATEWAY_DB_PATH. Exit codes: 0 stopped as asked, 1 a fault, 2 wrong settings, 3 the
    database cannot be used.
    """
    try:
        settings = load_settings()
        set_up_logs(settings.log_format, settings.log_level)
        asyncio.run(_serve(settings))
    except SettingsError as error:
        _fail(str(error), EXIT_SETTINGS)
    except DatabaseUnusableError as error:
        _fail(f"the database cannot be used: {error}", EXIT_DATABASE)
    except FatalStoreError as error:
        _fail(f"{error}; start the gateway again", EXIT_FAULT)


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await run_gateway(settings, stop, on_ready=_tell_ports)


def _tell_ports(ports: Ports) -> None:
    typer.echo(f"order-gateway: gRPC on port {ports.grpc}")
    typer.echo(f"order-gateway: HTTP on port {ports.http}")


def _fail(message: str, code: int) -> NoReturn:
    logging.shutdown()
    typer.echo(f"order-gateway: {message}", err=True)
    raise typer.Exit(code)


def main() -> None:
    """Run the command line."""
    app(prog_name="order-gateway")
