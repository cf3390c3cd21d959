"""`order-gateway serve`."""

import asyncio
import signal

import typer
import uvloop

from gateway.cli.exits import EPILOG, CommandError, Exit
from gateway.logs import set_up_logs
from gateway.main import FatalStoreError, Ports, run_gateway
from gateway.settings import Settings, SettingsError, load_settings
from gateway.store.sqlite.schema import DatabaseUnusableError


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EPILOG)(serve)


def serve() -> None:
    """Run the gateway until SIGTERM or Ctrl-C.

    Settings come from the environment and from .env (see .env.example); the ones to begin with are RAKUTEN_SITES,
    RAKUTEN_API_TOKEN and RAKUTEN_GATEWAY_DB_PATH.
    """
    try:
        settings = load_settings()
        set_up_logs(settings.log_format, settings.log_level)
        # The same loop in C: an eighth less work a call (docs/benchmarks.md).
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings))
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    except DatabaseUnusableError as error:
        raise CommandError(f"the database cannot be used: {error}", Exit.DATABASE) from error
    except FatalStoreError as error:
        raise CommandError(f"{error}; start the gateway again", Exit.FAULT) from error


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await run_gateway(settings, stop, on_ready=_tell_ports)


def _tell_ports(ports: Ports) -> None:
    typer.echo(f"order-gateway: gRPC on port {ports.grpc}")
    typer.echo(f"order-gateway: HTTP on port {ports.http}")
