"""The command `order-worker`."""

import asyncio
import getpass
import hashlib
import json
import logging
import os
import signal
import sqlite3
import sys
import time
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NoReturn, TypeVar

import typer
from rich.text import Text

from common.escapes import escape_controls, escape_lines
from common.exit_codes import CommandError, Exit, epilog
from common.output import print_line, say, standard_output
from common.program import Program
from common.service_manager import tell_ready
from common.settings import SettingsError
from common.tables import print_fields, print_table
from common.unknown_settings import unknown_settings
from sandbox_shop.server import run_sandbox_shop
from worker.cli.checkup import ask_gateway, effective_settings
from worker.clock import SystemClock, utc_text
from worker.gateway.port import BAD_CREDENTIALS, Refused, Unreachable
from worker.journal.carryable import carryable_text
from worker.journal.errors import JournalError, unusable
from worker.journal.journal import Journal
from worker.journal.lock import is_in_use
from worker.journal.records import Order, OrderStatus, ReclaimRequest, ReclaimStatus
from worker.main import NO_SITE, run_worker
from worker.settings import WorkerSettings, load_settings
from worker.telemetry.logs import configure_logging

T = TypeVar("T")
log = logging.getLogger(__name__)

EPILOG = epilog(Exit)

app = typer.Typer(
    name="order-worker",
    cls=Program,
    help="The local worker: takes one order at a time from the gateway, buys it, keeps the evidence, reports.\n\n"
    "Settings come from the environment and from .env in the current folder, prefix RAKUTEN_.",
    epilog=EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
journal_app = typer.Typer(help="Look into the journal, the authority on what this worker did.", no_args_is_help=True)
evidence_app = typer.Typer(help="Look at the kept pages and screenshots.", no_args_is_help=True)
app.add_typer(journal_app, name="journal", epilog=EPILOG)
app.add_typer(evidence_app, name="evidence", epilog=EPILOG)

TaskArgument = Annotated[str, typer.Argument(metavar="TASK", help="The task_id.")]
_MOMENTS = ("created_at", "updated_at", "pay_deadline")
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def _fail(message: str, code: Exit = Exit.USAGE) -> NoReturn:
    raise CommandError(message, code)


def _warn(message: str) -> None:
    typer.echo(escape_controls(message), err=True)


def _settings() -> WorkerSettings:
    try:
        return load_settings()
    except SettingsError as error:
        _fail(str(error))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"order-worker {version('order-gateway')}")
        raise typer.Exit


@app.callback()
def common(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """What all commands have in common."""


@app.command()
def config(as_json: JsonOption = False) -> None:
    """Show every setting in effect here, and where it comes from. Tokens are never shown.

    Warns of each RAKUTEN_* name that is no setting.
    """
    settings = _settings()
    rows = list(effective_settings(settings))
    for line in (*unknown_settings(), *settings.unusual()):
        _warn(f"order-worker: warning: {line}")
    if as_json:
        _print_json({name: {"value": value, "from": source} for name, value, source in rows})
        return
    print_table(("setting", "value", "from"), rows, "no settings")


@app.command()
def check() -> None:
    """Connect to the gateway with the token, and say what is wrong. Changes nothing, there or here."""
    settings = _settings()
    if settings.gateway is None:
        _fail("RAKUTEN_ORDER_GATEWAY_URL is empty: there is no gateway to work for")
    address = settings.gateway.address
    try:
        asyncio.run(ask_gateway(settings))
    except SettingsError as error:
        _fail(str(error))
    except Unreachable as error:
        _fail(f"the gateway at {address} cannot be reached: {error}", Exit.UNREACHABLE)
    except Refused as refusal:
        _fail(f"{BAD_CREDENTIALS} ({refusal.reason_name}): {refusal}", Exit.DENIED)
    say(f"the gateway at {address} answers and takes the token")
    if not settings.sandbox_url:
        _warn(NO_SITE)


@app.command()
def run() -> None:
    """Run the worker until SIGTERM or Ctrl-C; it then leaves the order in hand safely and ends within 10 s.

    It opens no port: every connection goes out. A second signal ends it at once.
    """
    settings = _settings()
    configure_logging(settings.log_format, settings.log_level)
    for line in (*unknown_settings(), *settings.unusual()):
        log.warning("%s", line)
    try:
        asyncio.run(_run(settings))
    except SettingsError as error:
        _fail(str(error))
    except JournalError as error:
        _fail(str(error), Exit.DATABASE)


async def _run(settings: WorkerSettings) -> None:
    stop = asyncio.Event()
    stop_on_signals(stop)
    await run_worker(settings, stop=stop, on_ready=tell_ready)


def stop_on_signals(stop: asyncio.Event) -> None:
    """The first SIGTERM or SIGINT sets `stop`; the second one does what it does by default."""
    loop = asyncio.get_running_loop()

    def first() -> None:
        stop.set()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, first)


@app.command()
def sandbox(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 31120,
    reflection_delay: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds until a new order shows in the order list. The real site: about 600."),
    ] = None,
) -> None:
    """Run the sandbox shop, a small web shop to try the worker on. Its orders are gone when it ends.

    Let the worker buy there with RAKUTEN_SANDBOX_URL set to the address that is printed.
    """

    async def serve() -> None:
        stop = asyncio.Event()
        stop_on_signals(stop)
        serving = asyncio.create_task(
            run_sandbox_shop(
                host,
                port,
                reflection_delay_seconds=reflection_delay,
                on_ready=lambda url: print_line(f"sandbox shop: {url}"),
            )
        )
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if serving.done():
            await serving
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    try:
        asyncio.run(serve())
    except OSError as error:
        _fail(f"the shop cannot listen on {host}:{port}: {error.strerror or error}")


@app.command(epilog=EPILOG)
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
    settings = _settings()
    asked = {"requested_by": _bounded("--by", by or _logged_in(), 128), "reason": _bounded("--reason", reason, 1_000)}
    path = settings.trading_db_path
    raise typer.Exit(_in_journal(settings, lambda journal: _reclaim(path, journal, task, asked, wait)))


def _logged_in() -> str:
    """The name of whoever types; root's commands keep the name that sudo tells."""
    try:
        return os.environ.get("SUDO_USER") or getpass.getuser()
    except (OSError, KeyError):  # an account without a name
        return f"uid {os.getuid()}"


def _bounded(option: str, text: str, limit: int) -> str:
    words = carryable_text(text, limit + 1).strip()
    if not 1 <= len(words) <= limit:
        _fail(f"{option} must be 1 to {limit:,} characters")
    return words


async def _reclaim(path: Path, journal: Journal, task_id: str, asked: dict[str, str], wait: float) -> Exit:
    before = await journal.reclaims.last(task_id)
    number = await journal.reclaims.file(task_id, **asked)
    say(f"request {number}: reclaim {task_id}")
    if before is not None:
        words = "was filed before and is still open" if before.id == number else f"ran before: {before.status}"
        print_line(f"  request {before.id} {words}; {before.note}".rstrip("; "))
    if not is_in_use(path):
        _warn("no worker runs on this journal; the request waits until one is started")
    deadline = time.monotonic() + wait
    known = await journal.orders.find(task_id)
    seen = (await journal.orders.history(task_id))[-1].id if known else 0
    note = ""
    while True:
        reclaim_request = await journal.reclaims.find(number)
        if reclaim_request is None:
            raise LookupError(f"request {number} is gone")
        seen = await _show_progress(journal, task_id, seen)
        if reclaim_request.note and reclaim_request.note != note:
            note = reclaim_request.note
            print_line(f"  {reclaim_request.status}: {note}")
        if not reclaim_request.status.is_open:
            return await _reclaim_code(journal, reclaim_request)
        if time.monotonic() >= deadline:
            if not wait:
                return Exit.DONE
            still_open = f"request {number} is {reclaim_request.status} after {wait:g} s, and stays open"
            _warn(f"{still_open}; the same command follows it again")
            return Exit.STILL_WAITING
        await asyncio.sleep(0.3)


async def _show_progress(journal: Journal, task_id: str, seen: int) -> int:
    for entry in await journal.orders.history(task_id):
        if entry.id > seen:
            seen = entry.id
            words = " ".join(part for part in (entry.event, entry.detail and f"({entry.detail})") if part)
            print_line(f"  {_short_time(utc_text(entry.at))}  {entry.to_state:<17} {words}")
    return seen


async def _reclaim_code(journal: Journal, reclaim_request: ReclaimRequest) -> Exit:
    if reclaim_request.status is ReclaimStatus.REFUSED:
        return Exit.NOT_FOUND if reclaim_request.names_no_task else Exit.REFUSED
    if reclaim_request.status is ReclaimStatus.INTERRUPTED:
        return Exit.INTERRUPTED
    order = await journal.orders.find(reclaim_request.task_id)
    codes = {OrderStatus.SUCCEEDED: Exit.DONE, OrderStatus.FAILED: Exit.FAILED}
    return Exit.INTERRUPTED if order is None else codes.get(order.status, Exit.NEEDS_HUMAN)


@journal_app.command("list")
def journal_list(
    limit: Annotated[int, typer.Option(min=1, max=10000, help="At most so many.")] = 50, as_json: JsonOption = False
) -> None:
    """The orders touched last, newest first."""
    orders = _in_journal(_settings(), lambda journal: journal.orders.latest(limit))
    if as_json:
        _print_json([_order_fields(order) for order in orders])
        return
    print_table(
        ("task", "site", "status", "state", "order number", "yen", "updated"),
        (
            (
                order.task_id,
                order.site,
                order.status,
                order.state,
                _cell(order.site_order_id),
                _cell(order.payable_yen),
                _short_time(utc_text(order.updated_at)),
            )
            for order in orders
        ),
        "no orders",
    )


@journal_app.command("show")
def journal_show(task: TaskArgument, as_json: JsonOption = False) -> None:
    """One order with its history and the reports made of it."""
    shown = _in_journal(_settings(), lambda journal: _show(journal, task))
    if shown is None:
        _fail(f"the journal does not know the task {task}", Exit.NOT_FOUND)
    if as_json:
        _print_json(shown)
        return
    order = {name: _cell(value) for name, value in shown["order"].items()}
    print_fields((name, _short_time(value) if name in _MOMENTS and value else value) for name, value in order.items())
    print_line(Text("\nhistory", "bold"))
    history = ((_short_time(entry["at"]), *map(_cell, list(entry.values())[1:])) for entry in shown["history"])
    print_table(("when", "what", "state", "status", "evidence", "words"), history, "nothing yet")
    print_line(Text("\nreports", "bold"))
    reports = (tuple(map(_cell, report.values())) for report in shown["reports"])
    print_table(("sequence", "state", "ends as", "gateway"), reports, "none yet")


async def _show(journal: Journal, task_id: str) -> dict[str, Any] | None:
    order = await journal.orders.find(task_id)
    if order is None:
        return None
    history = [
        {
            "at": utc_text(entry.at),
            "event": entry.event,
            "state": entry.to_state,
            "status": entry.to_status,
            "evidence_ref": entry.evidence_ref,
            "detail": entry.detail,
        }
        for entry in await journal.orders.history(task_id)
    ]
    reports = [
        {
            "sequence": report.sequence,
            "state": report.state,
            "terminal_status": report.terminal_status,
            "outcome": report.outcome or "waiting",
        }
        for report in await journal.reports.of_task(task_id)
    ]
    claims = journal.claims
    clicked = {"clicked": await claims.has_click(task_id), "payment_begun": await claims.has_payment(task_id)}
    return {"order": _order_fields(order) | clicked, "history": history, "reports": reports}


def _order_fields(order: Order) -> dict[str, object]:
    """What may be shown of an order: everything but its lease token."""
    return {
        "task_id": order.task_id,
        "site": order.site,
        "status": order.status,
        "state": order.state,
        "site_order_id": order.site_order_id,
        "payable_yen": order.payable_yen,
        "pay_deadline": order.pay_deadline and utc_text(order.pay_deadline),
        "evidence_ref": order.evidence_ref,
        "detail": order.detail,
        "error_code": order.error_code,
        "created_at": utc_text(order.created_at),
        "updated_at": utc_text(order.updated_at),
        "intent": order.intent_json,
    }


@evidence_app.command("list")
def evidence_list(task: TaskArgument, as_json: JsonOption = False) -> None:
    """The evidence files of a task, with their sizes and whether they still are what was written."""
    settings = _settings()
    if _in_journal(settings, lambda journal: journal.orders.find(task)) is None:
        _fail(f"the journal does not know the task {task}", Exit.NOT_FOUND)
    files = _in_journal(settings, lambda journal: journal.evidence.of_task(task))
    rows = [
        {"path": str(settings.evidence_dir / file.path), "bytes": file.size, "sha256": file.sha256}
        | {"intact": _is_intact(settings.evidence_dir / file.path, file.sha256)}
        for file in files
    ]
    if as_json:
        _print_json(rows)
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


def _in_journal(settings: WorkerSettings, look: Callable[[Journal], Awaitable[T]]) -> T:
    async def looked() -> T:
        journal = await Journal.open_beside(settings.trading_db_path, clock=SystemClock())
        try:
            return await look(journal)
        finally:
            await journal.close()

    try:
        return asyncio.run(looked())
    except (JournalError, sqlite3.Error) as error:
        _fail(str(unusable(settings.trading_db_path, error)), Exit.DATABASE)


def main() -> None:
    """The console script."""
    with standard_output("order-worker"):
        app(prog_name="order-worker")


def _print_json(value: Any) -> None:
    sys.stdout.write(escape_lines(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")


def _cell(value: object) -> str:
    return "" if value is None else str(value)


def _short_time(text: str) -> str:
    """A moment as `utc_text` wrote it, to the second: `2026-07-27 09:15:00Z`."""
    return f"{text[:10]} {text[11:19]}Z"
