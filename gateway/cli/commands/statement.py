"""`order-gateway statement`."""

import sys
from collections.abc import Iterator
from typing import Annotated

import typer
from ordergateway.v1 import orders_pb2, statements_pb2

from common.exit_codes import CommandError, Exit
from common.output import print_json, say
from common.tables import print_table
from common.target import Target
from gateway.cli.client import Client, connected
from gateway.cli.options import GatewayOption, JsonOption
from gateway.cli.output import as_json, when, word
from gateway.spreadsheets.safe_csv import write_csv
from gateway.spreadsheets.statement import COLUMNS, cells
from gateway.spreadsheets.words import name_of


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(statement)


def statement(
    day: Annotated[str, typer.Option("--day", metavar="YYYY-MM-DD", help="The day of submission.")],
    zone: Annotated[
        str,
        typer.Option("--zone", metavar="ZONE", help="Its time zone (IANA); default RAKUTEN_BUDGET_TIMEZONE."),
    ] = "",
    as_csv: Annotated[bool, typer.Option("--csv", help="Write CSV, for spreadsheets.")] = False,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Tell what was filed on a day: order numbers, yen, who decided what, and the sums.

    Each task as it stands now. A cell of the CSV that a spreadsheet would take for a formula begins with an apostrophe.
    """
    if as_csv and as_json_:
        raise CommandError("--csv and --json exclude each other", Exit.USAGE)
    request = statements_pb2.ListStatementRequest(day=day, time_zone=zone, page_size=200)
    with connected(gateway) as client:
        pages = _pages(client, request)
        if as_csv:
            write_csv(sys.stdout, COLUMNS, (cells(line) for page in pages for line in page.lines))
            sys.stdout.flush()
            return
        whole = _whole(pages)
    if as_json_:
        print_json(as_json(whole))
    else:
        _print(day, whole)


def _pages(
    client: Client, request: statements_pb2.ListStatementRequest
) -> Iterator[statements_pb2.ListStatementResponse]:
    while True:
        page = client.call(client.operations.ListStatement, request)
        yield page
        # What repeats itself would never end.
        if page.next_page_token in ("", request.page_token):
            return
        request.page_token = page.next_page_token


def _whole(pages: Iterator[statements_pb2.ListStatementResponse]) -> statements_pb2.ListStatementResponse:
    """Return all pages as one."""
    whole = next(pages)
    for page in pages:
        whole.lines.extend(page.lines)
        for field, value in page.totals.ListFields():
            setattr(whole.totals, field.name, getattr(whole.totals, field.name) + value)
    whole.next_page_token = ""
    return whole


def _print(day: str, whole: statements_pb2.ListStatementResponse) -> None:
    print_table(
        ("task", "at", "filed", "by", "status", "spending", "yen", "order numbers", "decided"),
        (
            (
                line.task_id,
                str(Target(line.site, line.account)),
                when(line, "filed_at"),
                line.filed_by,
                word(orders_pb2.TaskStatus, line.status),
                name_of(statements_pb2.Spending, line.spending),
                _yen(line),
                " ".join(line.site_order_ids),
                ", ".join(f"{decision.kind} by {decision.decided_by}" for decision in line.decisions),
            )
            for line in whole.lines
        ),
        f"nothing was filed on {day} ({whole.time_zone})",
    )
    if whole.lines:
        say(f"\n{day} ({whole.time_zone}), from {when(whole, 'starts_at')} to {when(whole, 'ends_at')}")
        say(_sums(whole.totals))


def _sums(totals: statements_pb2.StatementTotals) -> str:
    told = [f"{totals.tasks:,} tasks: {totals.ordered:,} ordered for {totals.ordered_yen:,} yen"]
    if totals.possible:
        told.append(f"{totals.possible:,} possibly for {totals.possible_yen:,} yen")
    if totals.cancelled:
        told.append(f"{totals.cancelled:,} cancelled, of {totals.cancelled_yen:,} yen")
    if totals.without_amount:
        told.append(f"{totals.without_amount:,} of them of an amount that nobody knows")
    return ", ".join(told)


def _yen(line: statements_pb2.StatementLine) -> str:
    return f"{line.yen:,}" if line.HasField("yen") else ""
