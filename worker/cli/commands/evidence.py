"""`order-worker evidence list`."""

import hashlib
from pathlib import Path

import typer

from common.exit_codes import CommandError, Exit
from common.output import print_json
from common.tables import print_table
from worker.cli.options import EPILOG, JsonOption, TaskArgument
from worker.cli.setup import in_journal, read_settings


def add_to(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Look at the kept pages and screenshots.", no_args_is_help=True)
    group.command("list")(list_files)
    app.add_typer(group, name="evidence", epilog=EPILOG)


def list_files(task: TaskArgument, as_json: JsonOption = False) -> None:
    """The evidence files of a task, with their sizes and whether they still are what was written."""
    settings = read_settings()
    if in_journal(settings, lambda journal: journal.orders.find(task)) is None:
        raise CommandError(f"the journal does not know the task {task}", Exit.NOT_FOUND)
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


def _is_intact(path: Path, sha256: str) -> bool:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == sha256
    except OSError:
        return False
