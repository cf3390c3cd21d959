"""`order-worker evidence list` and `evidence serve`."""

import asyncio
import hashlib
import sqlite3
from pathlib import Path
from typing import Annotated

import typer

from common.exit_codes import CommandError, Exit
from common.output import print_json, print_line
from common.tables import print_table
from worker.cli.options import EPILOG, JsonOption, TaskArgument
from worker.cli.setup import in_journal, read_settings
from worker.cli.signals import stop_on_signals
from worker.clock import SystemClock
from worker.journal.errors import JournalError, unusable
from worker.journal.journal import Journal
from worker.settings import WorkerSettings
from worker.sites.page_reader import PageReader


def add_to(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Look at the kept pages and screenshots.", no_args_is_help=True)
    group.command("list")(list_files)
    group.command("serve")(serve)
    app.add_typer(group, name="evidence", epilog=EPILOG)


def list_files(task: TaskArgument, as_json: JsonOption = False) -> None:
    """The evidence files of a task, with their sizes and whether they still are what was written."""
    settings = _settings_where_known(task)
    rows = [
        {"path": str(settings.evidence_dir / file.path), "bytes": file.size, "sha256": file.sha256}
        | {"intact": _is_intact(settings.evidence_dir / file.path, file.sha256)}
        for file in in_journal(settings, lambda journal: journal.evidence.of_task(task))
    ]
    if as_json:
        print_json(rows)
        return
    print_table(
        ("file", "bytes", "intact"),
        ((str(row["path"]), str(row["bytes"]), "yes" if row["intact"] else "NO") for row in rows),
        "no files",
    )


def serve(
    task: TaskArgument,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")] = 0,
) -> None:
    """Show the evidence of a task in the browser of this machine, until Ctrl-C: pages made inert, pictures, hashes.

    Only who has the whole address that is printed can open it. The worker itself listens on nothing.
    """
    settings = _settings_where_known(task)
    try:
        asyncio.run(_serve(settings, task, port))
    except OSError as error:
        raise CommandError(f"cannot listen on port {port}: {error.strerror or error}", Exit.USAGE) from error
    except (JournalError, sqlite3.Error) as error:
        raise CommandError(str(unusable(settings.trading_db_path, error)), Exit.DATABASE) from error


async def _serve(settings: WorkerSettings, task: str, port: int) -> None:
    # The server takes long to load, and no other command needs it.
    from worker.evidence_page.pages import EvidencePages  # noqa: PLC0415
    from worker.evidence_page.server import serve as serve_pages  # noqa: PLC0415

    stop, reader = asyncio.Event(), PageReader()
    stop_on_signals(stop)
    journal = await Journal.open_beside(settings.trading_db_path, clock=SystemClock())
    try:
        pages = EvidencePages(task, settings.evidence_dir, lambda: journal.evidence.of_task(task), reader)
        await serve_pages(pages, port, stop, lambda url: print_line(f"evidence of {task}, until Ctrl-C: {url}"))
    finally:
        await reader.close()
        await journal.close()


def _settings_where_known(task: str) -> WorkerSettings:
    settings = read_settings()
    if in_journal(settings, lambda journal: journal.orders.find(task)) is None:
        raise CommandError(f"the journal does not know the task {task}", Exit.NOT_FOUND)
    return settings


def _is_intact(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False
