"""`order-gateway copy`."""

from pathlib import Path
from typing import Annotated, Final

import typer

from common.exit_codes import CommandError, Exit
from common.output import print_json, say
from common.settings import SettingsError
from common.tables import print_table
from gateway.cli.options import JsonOption
from gateway.cli.output import progress_console
from gateway.database import require_driver
from gateway.settings import load_settings
from gateway.store.port import DatabaseUnusableError, StoreUnavailableError

_FILE: Final = "sqlite:"
_SERVER: Final = ("postgresql://", "postgres://")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(copy)


def copy(
    source: Annotated[
        str, typer.Option("--from", metavar="sqlite:PATH", help="The file; default RAKUTEN_GATEWAY_DB_PATH.")
    ] = "",
    target: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="postgresql://USER@HOST/DATABASE",
            help="An empty database; default RAKUTEN_GATEWAY_DB_URL. A password belongs there, into PGPASSWORD or a "
            "password file, not here.",
        ),
    ] = "",
    as_json_: JsonOption = False,
) -> None:
    """Move a gateway's content from its SQLite file to an empty PostgreSQL database; the gateway must be stopped.

    Everything is copied in one transaction, read back and compared. The file is then marked as moved and not served any
    more; the gateways start on the database as if nothing had happened. Whatever goes wrong leaves both as they were.
    """
    try:
        settings = load_settings()
        path = _path(source) if source else settings.gateway_db_path
        require_driver()
        url = _url(target) if target else settings.gateway_db_url and settings.gateway_db_url.get_secret_value()
        if not url:
            raise CommandError("where to? Name it: --to, or RAKUTEN_GATEWAY_DB_URL", Exit.USAGE)
        from gateway.copy_to_server import copy as copy_all  # noqa: PLC0415 - needs the driver

        console = progress_console()
        done = copy_all(path, url, lambda line: console.print(line, markup=False, highlight=False))
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    except DatabaseUnusableError as error:
        raise CommandError(str(error), Exit.DATABASE) from error
    except StoreUnavailableError as error:
        raise CommandError(str(error), Exit.FAULT) from error
    if as_json_:
        tables = {name: {"rows": held.rows, "sha256": held.digest} for name, held in (done.tables or {}).items()}
        print_json({"database": done.shown, "done_before": done.tables is None, "tables": tables})
        return
    if done.tables is None:
        say(f"{done.shown} has everything already: an earlier run had committed it.")
        return
    rows = [(name, f"{held.rows:,}", held.digest[:16]) for name, held in sorted(done.tables.items())]
    print_table(("table", "rows", "sha256 on both sides"), rows, "no tables")
    say(f"{path} is marked as moved to {done.shown}: start the gateways with RAKUTEN_GATEWAY_DB_URL.")


def _path(source: str) -> Path:
    if not source.startswith(_FILE) or source.startswith(f"{_FILE}//"):
        raise CommandError(f"--from {source}: it must be {_FILE}PATH", Exit.USAGE)
    return Path(source.removeprefix(_FILE))


def _url(target: str) -> str:
    from gateway.store.postgres.connection import parse_url  # noqa: PLC0415 - needs the driver

    if not target.startswith(_SERVER):
        raise CommandError(f"--to: it must begin with {_SERVER[0]}", Exit.USAGE)
    if parse_url(target).has_password:
        raise CommandError(
            "--to holds a password, which everybody on this machine can see in the list of processes: set "
            "RAKUTEN_GATEWAY_DB_URL or PGPASSWORD, or use a password file",
            Exit.USAGE,
        )
    return target
