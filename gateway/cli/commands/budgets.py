"""`order-gateway budgets`."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Final

import typer
from ordergateway.v1 import budgets_pb2

from common.output import print_json, say
from common.tables import print_fields, print_table
from common.target import Target
from gateway.cli.client import connected
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import MAX_YEN, GatewayOption, JsonOption, ReasonOption
from gateway.cli.output import as_json, list_as_json, when
from gateway.spreadsheets.words import name_of

budgets = typer.Typer(help="Set what may be spent within a day, a week or a month.", no_args_is_help=True)

BudgetArgument = Annotated[str, typer.Argument(metavar="BUDGET", help="The budget's name.")]

_ENTRIES: Final = 50


class Period(StrEnum):
    """For how long a budget is."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(budgets, name="budgets", epilog=EPILOG)


@budgets.command("set")
def set_budget(  # noqa: PLR0913, PLR0917 - the options of a command are its parameters
    budget: BudgetArgument,
    yen: Annotated[int, typer.Argument(metavar="YEN", min=0, max=MAX_YEN, help="Yen a period, everything included.")],
    period: Annotated[Period, typer.Option(help="For how long it is: then it is whole again.")],
    reason: ReasonOption,
    site: Annotated[str, typer.Option(metavar="SITE", help="Count the orders on this site only.")] = "",
    account: Annotated[
        str | None, typer.Option(metavar="ACCOUNT", help="Of the site only this account; '' is its only one.")
    ] = None,
    identity: Annotated[
        str, typer.Option(metavar="NAME", help="Count the orders only that the token of this name files.")
    ] = "",
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Let a budget stand, or change the yen of one. Without SITE and NAME it counts all orders.

    It counts permits from then on. What it counts, and for how long it is, stays as it was set first.
    """
    request = budgets_pb2.SetBudgetRequest(
        budget_id=budget,
        scope=budgets_pb2.BudgetScope(site=site, account=account, identity=identity),
        period=budgets_pb2.BudgetPeriod.Value(f"BUDGET_PERIOD_{period.name}"),
        limit_yen=yen,
        reason=reason,
    )
    with connected(gateway) as client:
        told = client.call(client.operations.SetBudget, request).budget
    if as_json_:
        print_json(as_json(told))
    else:
        _print((told,))


@budgets.command("list")
def list_budgets(gateway: GatewayOption = None, as_json_: JsonOption = False) -> None:
    """List the budgets that stand, with what of each is left."""
    with connected(gateway) as client:
        found = client.call(client.operations.ListBudgets, budgets_pb2.ListBudgetsRequest()).budgets
    if as_json_:
        list_as_json("budgets", found)
    else:
        _print(found)


@budgets.command()
def show(
    budget: BudgetArgument,
    limit: Annotated[
        int, typer.Option(min=1, metavar="ENTRIES", help="So many of the newest entries of its ledger.")
    ] = _ENTRIES,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Show a budget, also one that was removed, and what permits reserved of it, newest first."""
    request = budgets_pb2.GetBudgetRequest(budget_id=budget)
    with connected(gateway) as client:
        told = client.call(client.operations.GetBudget, request).budget
        entries = client.pages(client.operations.GetBudget, request, "entries", limit)
    if as_json_:
        print_json({"budget": as_json(told), "entries": [as_json(entry) for entry in entries]})
        return
    print_fields(
        (
            ("budget", told.budget_id),
            ("counts", _scope(told.scope)),
            ("yen", f"{told.limit_yen} a {name_of(budgets_pb2.BudgetPeriod, told.period)} ({told.time_zone})"),
            ("left", str(told.left_yen)),
            ("reserved", str(told.reserved_yen)),
            ("settled", str(told.settled_yen)),
            ("renews", when(told, "renews_at")),
            ("set", f"{when(told, 'set_at')} by {told.set_by}"),
            *((("removed", when(told, "removed_at")),) if told.HasField("removed_at") else ()),
        )
    )
    print_table(
        ("task", "permitted", "reserved", "counts", "as", "since"),
        (
            (
                entry.task_id,
                when(entry, "granted_at"),
                str(entry.reserved_yen),
                str(entry.counted_yen),
                name_of(budgets_pb2.BudgetEntryState, entry.state),
                when(entry, "changed_at"),
            )
            for entry in entries
        ),
        "no permit has reserved anything of it",
    )


@budgets.command()
def remove(
    budget: BudgetArgument, reason: ReasonOption, gateway: GatewayOption = None, as_json_: JsonOption = False
) -> None:
    """Let a budget stand no more. Its ledger stays."""
    request = budgets_pb2.DeleteBudgetRequest(budget_id=budget, reason=reason)
    with connected(gateway) as client:
        client.call(client.operations.DeleteBudget, request)
    if as_json_:
        print_json({})
    else:
        say(f"budget {budget} is removed")


def _print(found: Sequence[budgets_pb2.Budget]) -> None:
    print_table(
        ("budget", "counts", "yen", "a", "left", "reserved", "settled", "renews"),
        (
            (
                budget.budget_id,
                _scope(budget.scope),
                str(budget.limit_yen),
                name_of(budgets_pb2.BudgetPeriod, budget.period),
                str(budget.left_yen),
                str(budget.reserved_yen),
                str(budget.settled_yen),
                when(budget, "renews_at"),
            )
            for budget in found
        ),
        "no budget stands",
    )


def _scope(scope: budgets_pb2.BudgetScope) -> str:
    if scope.identity:
        return f"orders of {scope.identity}"
    if not scope.site:
        return "all orders"
    return f"orders on {Target(scope.site, scope.account) if scope.HasField('account') else scope.site}"
