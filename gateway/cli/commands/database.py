"""`order-gateway database`: what a person says of a database on a server that nobody could tell from the one it was."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

import typer

from common.exit_codes import CommandError, Exit
from common.output import print_json, say
from common.settings import SettingsError
from gateway.cli.confirmation import YesOption, require_agreement
from gateway.cli.options import JsonOption, ReasonOption
from gateway.domain.instant import Instant
from gateway.domain.models import Actor
from gateway.settings import load_settings
from gateway.store.port import DatabaseUnusableError, StoreUnavailableError, Transaction

T = TypeVar("T")

_ACTOR = Actor("restore")


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    group = typer.Typer(
        help="Say of a PostgreSQL database (RAKUTEN_GATEWAY_DB_URL) what it cannot tell itself (docs/postgresql.md).",
        no_args_is_help=True,
    )
    group.command("restored")(restored_command)
    group.command("adopt")(adopt_command)
    app.add_typer(group, name="database")


def restored_command(reason: ReasonOption, yes: YesOption = False, as_json_: JsonOption = False) -> None:
    """Treat the database as restored: its files were copied in place, so that nothing tells it from the former one.

    Dispatch is paused, and every open task counts as permitted: it may have been ordered since. Gateways may run.
    """
    from gateway.joining import NEXT, restored  # noqa: PLC0415 - see `_run`

    opened = _run(
        "Was this database put back, and shall every open task count as permitted?",
        yes,
        lambda tx, now: restored(tx, now, f"a copy in place ({reason})", _ACTOR),
    )
    if as_json_:
        print_json({"open_tasks": opened})
        return
    say(f"the database counts as restored: dispatch is paused, {opened} tasks were open")
    say(f"Next: {NEXT}")


def adopt_command(reason: ReasonOption, yes: YesOption = False, as_json_: JsonOption = False) -> None:
    """Take the database for the one it was: it was moved on purpose, with all gateways stopped, and lacks nothing.

    To be called after the move and before a gateway starts on it, which would take it for a restore.
    """
    from gateway.joining import adopt  # noqa: PLC0415 - see `_run`

    was = _run(
        "Is nothing missing in this database that the former one had acknowledged?",
        yes,
        lambda tx, now: adopt(tx, now, reason, _ACTOR),
    )
    if as_json_:
        print_json({"adopted": was is not None, "was": was or ""})
    elif was is None:
        say("nothing to adopt: this is the database that it was")
    else:
        say(f"the database, which looked like {was}, counts as the one it was; start the gateways")


def _run(question: str, yes: bool, operation: Callable[[Transaction, Instant], T]) -> T:
    # What opens a database takes long to load, and no other command needs it.
    from gateway.database import run_on_server, shown_server  # noqa: PLC0415

    try:
        settings = load_settings()
        if settings.gateway_db_url is None:
            raise CommandError(
                "the database is a file (RAKUTEN_GATEWAY_DB_URL is not set): put a backup in its place with "
                "`order-gateway restore`; nothing was changed",
                Exit.USAGE,
            )
        if not yes:
            require_agreement(f"The database is {shown_server(settings.gateway_db_url)}. {question}")
        return asyncio.run(run_on_server(settings, operation))
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from error
    except (DatabaseUnusableError, StoreUnavailableError) as error:
        raise CommandError(str(error), Exit.DATABASE) from error
