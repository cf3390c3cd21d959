"""The life of the gateway's process, from the command to the signal that ends it."""

import asyncio
import contextlib
import gc
import logging
import resource
import signal
import sys

import typer
import uvloop

from common.exit_codes import CommandError, Exit
from common.service_manager import tell_ready
from common.settings import SettingsError
from common.unknown_settings import unknown_settings
from gateway.database import FatalStoreError
from gateway.logs import set_up_logs
from gateway.main import Ports, run_gateway
from gateway.settings import Settings, load_settings
from gateway.store.port import DatabaseUnusableError, StoreUnavailableError

_log = logging.getLogger(__name__)


def run_until_signal() -> None:
    """Serve until SIGTERM or SIGINT. Raises CommandError."""
    try:
        settings = load_settings()
        set_up_logs(settings.log_format, settings.log_level)
        for line in unknown_settings():
            _log.warning("%s", line)
        _allow_many_connections()
        # The same loop in C: an eighth less work a call (docs/benchmarks.md).
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings))
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    except DatabaseUnusableError as error:
        raise CommandError(f"the database cannot be used: {error}", Exit.DATABASE) from error
    except StoreUnavailableError as error:
        raise CommandError(f"{error}; the gateway can be started again once that is over", Exit.FAULT) from error
    except FatalStoreError as error:
        raise CommandError(f"{error}; start the gateway again", Exit.FAULT) from error


def take_short_turns() -> None:
    """Keep what another thread computes from holding up the event loop. To be called when all is loaded.

    The loop asks for the interpreter after every system call, and by default waits 5 ms for it each time. And what was
    loaded stays for ever: looking through it for garbage takes 70 ms, whenever somebody makes many objects.
    """
    sys.setswitchinterval(0.000_5)
    gc.collect()
    gc.freeze()


def _allow_many_connections() -> None:
    """Raise the limit of open files to what the system allows: each long poll is a connection, thousands may wait."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        with contextlib.suppress(OSError, ValueError):  # some systems name a limit that they do not grant
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _serve(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await run_gateway(settings, stop, on_ready=_tell_ports)


def _tell_ports(ports: Ports) -> None:
    take_short_turns()
    tell_ready()
    typer.echo(f"order-gateway: gRPC on port {ports.grpc}")
    typer.echo(f"order-gateway: HTTP on port {ports.http}")
