"""`order-gateway backup` and `order-gateway restore`."""

from pathlib import Path
from typing import Annotated, Final

import typer
from ordergateway.v1 import operations_pb2
from rich.progress import Progress

from common.exit_codes import CommandError, Exit
from common.file_access import next_step
from common.output import print_json, say
from common.settings import SettingsError
from common.tables import print_fields
from gateway.cli.client import connected
from gateway.cli.confirmation import YesOption, require_agreement
from gateway.cli.options import GatewayOption, JsonOption
from gateway.cli.output import as_json, progress_console
from gateway.domain.operations import BackupFacts
from gateway.restore import Restored
from gateway.restore import restore as put_back
from gateway.settings import Settings, load_settings
from gateway.store.port import DatabaseUnusableError
from gateway.store.sqlite.backup import inspect

BACKUP_SECONDS: Final = 3_600.0
"""How long the command waits; the gateway goes on by itself if it is longer."""


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(backup)
    app.command()(restore)


def backup(gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """Make an online backup in the gateway's backup folder, and verify it. Orders go on meanwhile."""
    with connected(gateway) as client, progress_console().status("backing up and verifying"):
        done = client.call(client.operations.CreateBackup, operations_pb2.CreateBackupRequest(), BACKUP_SECONDS)
    if as_json_:
        print_json(as_json(done))
        return
    print_fields(
        (
            ("file", done.file_name),
            ("bytes", f"{done.size_bytes:,}"),
            ("sha256", done.sha256),
            ("tasks", f"{done.task_count:,}"),
            ("last event", f"{done.last_event_sequence:,}"),
        )
    )


def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The backup: a path, or a name in the backup folder.")],
    check: Annotated[bool, typer.Option("--check", help="Only verify the backup; nothing is changed.")] = False,
    yes: YesOption = False,
    as_json_: JsonOption = False,
) -> None:
    """Put a backup in the place of the database; the gateway must be stopped. The old database is kept beside it.

    The gateway then starts with dispatch paused, and every task that was open in the backup is stale and counts as
    permitted: it may have been ordered since. What came after the backup is not known to it any more.
    """
    try:
        settings = load_settings()
        path = _find(file, settings)
        if check:
            with progress_console().status("verifying"):
                _print_facts(inspect(path), as_json_)
            return
        if settings.gateway_db_url is not None:
            raise CommandError(
                "the database is PostgreSQL's (RAKUTEN_GATEWAY_DB_URL): restore it with its own tools "
                "(docs/postgresql.md); nothing was changed",
                Exit.USAGE,
            )
        target = settings.gateway_db_path.absolute()
        if not path.is_file():
            where = f"neither here nor in {settings.backup_dir.absolute()} (RAKUTEN_BACKUP_DIR)"
            raise CommandError(f"there is no backup {file}, {where}; nothing was changed", Exit.DATABASE)
        if not yes:
            _ask(path, target)
        console = progress_console()
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            copying = progress.add_task("restoring")
            done = put_back(
                path, target, lambda left, total: progress.update(copying, completed=total - left, total=total)
            )
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    except DatabaseUnusableError as error:
        raise CommandError(str(error), Exit.DATABASE) from error
    except OSError as error:
        found = Path(error.filename or file)
        raise CommandError(f"{found}: {error.strerror}{next_step(found)}", Exit.DATABASE) from error
    _print_restored(done, target, as_json_)


def _ask(backup: Path, target: Path) -> None:
    """A gateway that reads another database would never see the backup, so it is said which one is meant."""
    if target.exists():
        question = f"Replace {target} by {backup}?"
    else:
        question = (
            f"There is no database at {target} (RAKUTEN_GATEWAY_DB_PATH). Is this the one that the gateway reads, and "
            f"shall {backup} become it?"
        )
    require_agreement(question)


def _find(file: Path, settings: Settings) -> Path:
    in_folder = settings.backup_dir / file
    return in_folder if not file.exists() and len(file.parts) == 1 and in_folder.exists() else file


def _facts(facts: BackupFacts) -> dict[str, str | int]:
    return {
        "file_name": facts.file_name,
        "size_bytes": facts.size_bytes,
        "sha256": facts.sha256,
        "task_count": facts.task_count,
        "last_event_sequence": facts.last_event_sequence,
    }


def _print_facts(facts: BackupFacts, as_json_: bool) -> None:
    if as_json_:
        print_json(_facts(facts))
    else:
        print_fields((name.replace("_", " "), str(value)) for name, value in _facts(facts).items())
        say("the backup is whole")


def _print_restored(done: Restored, target: Path, as_json_: bool) -> None:
    if as_json_:
        aside = None if done.set_aside is None else str(done.set_aside)
        print_json({**_facts(done.facts), "open_tasks": done.open_tasks, "set_aside": aside})
        return
    say(f"{target} is restored: {done.facts.task_count} tasks, {done.open_tasks} of them open")
    if done.set_aside is not None:
        say(f"the old database is {done.set_aside}")
    say(
        "Next: start the gateway (dispatch is paused), look at `order-gateway decisions` and at the worker's "
        "`order-worker journal list`, then `order-gateway resume --reason ...`"
    )
