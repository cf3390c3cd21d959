"""`order-worker run`."""

import asyncio
import logging

import typer

from common.exit_codes import CommandError, Exit
from common.service_manager import tell_ready
from common.settings import SettingsError
from common.unknown_settings import unknown_settings
from worker.cli.setup import read_settings
from worker.cli.signals import stop_on_signals
from worker.journal.errors import JournalError
from worker.main import run_worker
from worker.settings import WorkerSettings
from worker.telemetry.logs import configure_logging

_log = logging.getLogger(__name__)


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(run)


def run() -> None:
    """Run the worker until SIGTERM or Ctrl-C; it then leaves the order in hand safely and ends within 10 s.

    It opens no port: every connection goes out. A second signal ends it at once.
    """
    settings = read_settings()
    configure_logging(settings.log_format, settings.log_level)
    for line in (*unknown_settings(), *settings.unusual()):
        _log.warning("%s", line)
    try:
        asyncio.run(_run(settings))
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    except JournalError as error:
        raise CommandError(str(error), Exit.DATABASE) from error


async def _run(settings: WorkerSettings) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    await run_worker(settings, stop=stop, on_ready=tell_ready)
