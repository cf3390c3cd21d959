"""`order-worker journal list` and `journal show`."""

from typing import Annotated, Any

import typer
from rich.text import Text

from common.exit_codes import CommandError, Exit
from common.output import print_json, print_line
from common.tables import print_fields, print_table
from worker.cli.options import EPILOG, JsonOption, TaskArgument
from worker.cli.output import cell, short_time
from worker.cli.setup import in_journal, read_settings
from worker.clock import utc_text
from worker.journal.journal import Journal
from worker.journal.records import Order

_MOMENTS = ("created_at", "updated_at", "pay_deadline")


def add_to(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Look into the journal, the authority on what this worker did.", no_args_is_help=True)
    group.command("list")(list_orders)
    group.command("show")(show)
    app.add_typer(group, name="journal", epilog=EPILOG)


def list_orders(
    limit: Annotated[int, typer.Option(min=1, max=10000, help="At most so many.")] = 50, as_json: JsonOption = False
) -> None:
    """The orders touched last, newest first."""
    orders = in_journal(read_settings(), lambda journal: journal.orders.latest(limit))
    if as_json:
        print_json([_fields(order) for order in orders])
        return
    print_table(
        ("task", "site", "status", "state", "order number", "yen", "updated"),
        (
            (
                order.task_id,
                order.site,
                order.status,
                order.state,
                cell(order.site_order_id),
                cell(order.payable_yen),
                short_time(utc_text(order.updated_at)),
            )
            for order in orders
        ),
        "no orders",
    )


def show(task: TaskArgument, as_json: JsonOption = False) -> None:
    """One order with its history and the reports made of it."""
    shown = in_journal(read_settings(), lambda journal: _read(journal, task))
    if shown is None:
        raise CommandError(f"the journal does not know the task {task}", Exit.NOT_FOUND)
    if as_json:
        print_json(shown)
        return
    order = {name: cell(value) for name, value in shown["order"].items()}
    print_fields((name, short_time(value) if name in _MOMENTS and value else value) for name, value in order.items())
    print_line(Text("\nhistory", "bold"))
    history = ((short_time(entry["at"]), *map(cell, list(entry.values())[1:])) for entry in shown["history"])
    print_table(("when", "what", "state", "status", "evidence", "words"), history, "nothing yet")
    print_line(Text("\nreports", "bold"))
    reports = (tuple(map(cell, report.values())) for report in shown["reports"])
    print_table(("sequence", "state", "ends as", "gateway"), reports, "none yet")


async def _read(journal: Journal, task_id: str) -> dict[str, Any] | None:
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
    claimed = {"clicked": await claims.has_click(task_id), "payment_begun": await claims.has_payment(task_id)}
    return {"order": _fields(order) | claimed, "history": history, "reports": reports}


def _fields(order: Order) -> dict[str, object]:
    """Return what may be shown of an order: everything but its lease token."""
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
