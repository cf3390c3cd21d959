"""`order-gateway migrate`."""

from typing import Annotated

import typer

from common.exit_codes import CommandError, Exit
from common.output import print_line, say
from common.settings import SettingsError
from common.tables import print_fields
from gateway.cli.output import progress_console
from gateway.migrate import Plan, bring_up, plan
from gateway.settings import load_settings
from gateway.store.port import DatabaseUnusableError, StoreUnavailableError


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(migrate)


def migrate(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell where the database stands, and what would run.")
    ] = False,
    stop_older: Annotated[
        bool, typer.Option("--stop-older", help="Also where a gateway that runs is too old to go on: it ends.")
    ] = False,
    grant_to: Annotated[
        str | None,
        typer.Option(
            "--grant-to",
            metavar="ROLE",
            help="Then give a role of the server what a gateway needs and nothing else; with --dry-run, print the SQL.",
        ),
    ] = None,
) -> None:
    """Bring the database to the schema of this version. Gateways of the former version go on meanwhile.

    It works on the database of RAKUTEN_GATEWAY_DB_URL, else on the file of RAKUTEN_GATEWAY_DB_PATH, whose gateway must
    be stopped. A gateway does the same at its start, where its role may.
    """
    try:
        settings = load_settings()
        found = plan(settings, grant_to)
        if dry_run:
            _show(found)
            return
        console = progress_console()
        ran = bring_up(
            settings,
            lambda line: console.print(line, markup=False, highlight=False),
            stop_older=stop_older,
            role=grant_to,
        )
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    except DatabaseUnusableError as error:
        raise CommandError(str(error), Exit.DATABASE) from error
    except StoreUnavailableError as error:
        raise CommandError(f"{error}; run it again once that is over", Exit.FAULT) from error
    say(f"{found.shown}: {ran} migrations were run; the schema version is {max(found.version, found.known)}")


def _show(found: Plan) -> None:
    print_fields(
        (
            ("database", found.shown),
            ("schema version", str(found.version)),
            ("this program knows", str(found.known)),
            ("would run", ", ".join(found.missing) or "nothing"),
        )
    )
    if found.rights:
        print_line()
        for line in found.rights.splitlines():
            print_line(line)
