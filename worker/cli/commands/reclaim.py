"""`order-worker reclaim`: a person has a stale task taken again, by the worker that runs on this journal."""

import asyncio
import getpass
import os
import time
from pathlib import Path
from typing import Annotated

import typer

from common.exit_codes import CommandError, Exit
from common.output import print_line, say
from worker.cli.options import EPILOG, TaskArgument
from worker.cli.output import short_time, warn
from worker.cli.setup import in_journal, read_settings
from worker.clock import utc_text
from worker.journal.carryable import carryable_text
from worker.journal.journal import Journal
from worker.journal.lock import is_in_use
from worker.journal.records import OrderStatus, ReclaimRequest, ReclaimStatus

MAX_BY = 128
MAX_REASON = 1_000
POLL_SECONDS = 0.3


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command(epilog=EPILOG)(reclaim)


def reclaim(
    task: TaskArgument,
    reason: Annotated[str, typer.Option(help="Why, for the gateway's history; 1 to 1,000 characters.")],
    by: Annotated[
        str, typer.Option(help="Who asks, for the history; up to 128 characters.", show_default="who is logged in")
    ] = "",
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for the end; 0: file the request and go.")] = 1800,
) -> None:
    """Take a stale task again: verify on the site whether it was ordered, and go on only if it was not.

    The request goes to the worker that runs on this journal; what it does is shown here. Asked again while one is open,
    it is the same request.

    It ends with 0 when the task succeeded (or, with --wait 0, when the request is filed).
    """
    settings = read_settings()
    requested_by = _bounded("--by", by or _logged_in(), MAX_BY)
    reason = _bounded("--reason", reason, MAX_REASON)
    path = settings.trading_db_path
    raise typer.Exit(in_journal(settings, lambda journal: _reclaim(path, journal, task, requested_by, reason, wait)))


def _logged_in() -> str:
    """Return the name of whoever types; root's commands keep the name that sudo tells."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (OSError, KeyError):  # an account without a name
        return f"uid {os.getuid()}"


def _bounded(option: str, text: str, limit: int) -> str:
    words = carryable_text(text, limit + 1).strip()
    if not 1 <= len(words) <= limit:
        raise CommandError(f"{option} must be 1 to {limit:,} characters", Exit.USAGE)
    return words


async def _reclaim(path: Path, journal: Journal, task_id: str, requested_by: str, reason: str, wait: float) -> Exit:
    number = await _file(journal, task_id, requested_by, reason)
    if not is_in_use(path):
        warn("no worker runs on this journal; the request waits until one is started")
    history = await journal.orders.history(task_id)
    return await _follow(journal, task_id, number, history[-1].id if history else 0, wait)


async def _file(journal: Journal, task_id: str, requested_by: str, reason: str) -> int:
    before = await journal.reclaims.last(task_id)
    number = await journal.reclaims.file(task_id, requested_by=requested_by, reason=reason)
    say(f"request {number}: reclaim {task_id}")
    if before is not None:
        words = "was filed before and is still open" if before.id == number else f"ran before: {before.status}"
        print_line(f"  request {before.id} {words}; {before.note}".rstrip("; "))
    return number


async def _follow(journal: Journal, task_id: str, number: int, seen: int, wait: float) -> Exit:
    """Show what becomes of the request, from the history's line `seen` on, for at most `wait` seconds."""
    deadline = time.monotonic() + wait
    note = ""
    while True:
        request = await journal.reclaims.find(number)
        if request is None:
            raise LookupError(f"request {number} is gone")
        seen = await _show_progress(journal, task_id, seen)
        if request.note and request.note != note:
            note = request.note
            print_line(f"  {request.status}: {note}")
        if not request.status.is_open:
            return await _code_of(journal, request)
        if time.monotonic() >= deadline:
            if not wait:
                return Exit.DONE
            still_open = f"request {number} is {request.status} after {wait:g} s, and stays open"
            warn(f"{still_open}; the same command follows it again")
            return Exit.STILL_WAITING
        await asyncio.sleep(POLL_SECONDS)


async def _show_progress(journal: Journal, task_id: str, seen: int) -> int:
    for entry in await journal.orders.history(task_id):
        if entry.id > seen:
            seen = entry.id
            words = " ".join(part for part in (entry.event, entry.detail and f"({entry.detail})") if part)
            print_line(f"  {short_time(utc_text(entry.at))}  {entry.to_state:<17} {words}")
    return seen


async def _code_of(journal: Journal, request: ReclaimRequest) -> Exit:
    if request.status is ReclaimStatus.REFUSED:
        return Exit.NOT_FOUND if request.names_no_task else Exit.REFUSED
    if request.status is ReclaimStatus.INTERRUPTED:
        return Exit.INTERRUPTED
    order = await journal.orders.find(request.task_id)
    codes = {OrderStatus.SUCCEEDED: Exit.DONE, OrderStatus.FAILED: Exit.FAILED}
    return Exit.INTERRUPTED if order is None else codes.get(order.status, Exit.NEEDS_HUMAN)
