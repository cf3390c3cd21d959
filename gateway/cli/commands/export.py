"""`order-gateway tasks export`: tasks as CSV or JSON lines, one page in memory at a time."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Final, Literal

import typer
from ordergateway.v1 import orders_pb2
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from common.escapes import escape_lines
from common.exit_codes import CommandError, Exit
from common.output import json_line
from gateway.cli.client import connected
from gateway.cli.commands.tasks import OldestFirstOption, tasks
from gateway.cli.options import GatewayOption
from gateway.cli.output import as_json, progress_console
from gateway.cli.search_options import selects_tasks
from gateway.spreadsheets.safe_csv import write_csv
from gateway.spreadsheets.words import exact, name_of

COLUMNS: Final = (
    "task_id", "site", "account", "status", "latest_state", "placement", "payable_yen", "site_order_id", "pay_deadline",
    "lease_count", "lease_owner", "created_at", "updated_at", "submit_permitted_at", "callback_url", "labels", "intent",
)  # fmt: skip


class Format(StrEnum):
    """How tasks are written."""

    CSV = "csv"
    JSONL = "jsonl"


def add_to(_app: typer.Typer) -> None:
    """Add the command to those of tasks."""
    tasks.command("export")(export)


@selects_tasks
def export(
    selected: orders_pb2.TaskFilter,
    format_: Annotated[
        Format, typer.Option("--format", help="csv: a table for spreadsheets; jsonl: a JSON object a line.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", help="The file to write, which must not exist; default: standard output.")
    ] = None,
    oldest_first: OldestFirstOption = False,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, help="How many to write at most; default: all.")
    ] = None,
    gateway: GatewayOption = None,
) -> None:
    """Write the selected tasks with what is known of them, the newest first.

    A cell of the CSV that a spreadsheet would take for a formula begins with an apostrophe. What JSON lines hold is
    exact.
    """
    write = _write_csv if format_ is Format.CSV else _write_json_lines
    with connected(gateway) as client, _opened(output) as file:
        write(file, _counted(client.search(selected, oldest_first=oldest_first, limit=limit), limit))


@contextmanager
def _opened(path: Path | None) -> Iterator[IO[str]]:
    if path is None:
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        with path.open("x", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise CommandError(f"{path} cannot be written ({error.strerror})", Exit.USAGE) from None


def _counted(found: Iterable[orders_pb2.Task], limit: int | None) -> Iterator[orders_pb2.Task]:
    """Show how many were written, on standard error and only to a terminal. How many there are nobody has counted."""
    console = progress_console()
    columns = (SpinnerColumn(), TextColumn("{task.completed:,} tasks"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("export", total=limit)
        for task in found:
            yield task
            progress.advance(bar)


def _write_json_lines(file: IO[str], found: Iterable[orders_pb2.Task]) -> None:
    for task in found:
        file.write(escape_lines(json_line(as_json(task))) + "\n")


def _write_csv(file: IO[str], found: Iterable[orders_pb2.Task]) -> None:
    write_csv(file, COLUMNS, map(_cells, found))


def _cells(task: orders_pb2.Task) -> Iterator[str]:
    def last_that_tells(field: Literal["payable_yen", "site_order_id", "pay_deadline"]) -> orders_pb2.Report | None:
        return next((report for report in reversed(task.reports) if report.HasField(field)), None)

    payable, number = last_that_tells("payable_yen"), last_that_tells("site_order_id")
    yield from (task.task_id, task.site, task.account)
    yield name_of(orders_pb2.TaskStatus, task.status)
    yield name_of(orders_pb2.OrderState, task.latest_state)
    yield name_of(orders_pb2.Placement, task.placement)
    yield str(payable.payable_yen) if payable else ""
    yield number.site_order_id if number else ""
    yield exact(last_that_tells("pay_deadline") or orders_pb2.Report(), "pay_deadline")
    yield from (str(task.lease_count), task.lease_owner)
    for field in ("created_at", "updated_at", "submit_permitted_at"):
        yield exact(task, field)
    yield task.callback_url
    yield json_line(dict(sorted(task.labels.items())))
    yield task.intent_json
