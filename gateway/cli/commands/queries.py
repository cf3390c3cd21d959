"""`order-gateway queries`: have a worker look at the account on the site, and see what it found."""

import json
from enum import StrEnum
from typing import Annotated

import grpc
import typer
from ordergateway.v1 import account_queries_pb2, orders_pb2

from common.exit_codes import CommandError, Exit
from common.output import print_json, say
from common.tables import print_fields, print_table
from common.target import Target
from gateway.cli.client import Client, connected
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import GatewayOption, JsonOption, LimitOption, choice
from gateway.cli.output import as_json, list_as_json, number_of, when, word
from gateway.cli.query_result import print_result

queries = typer.Typer(help="Have the account looked at on the site, and see what was found.", no_args_is_help=True)


class Kind(StrEnum):
    """What is read on the site."""

    ORDER_LIST = "order_list"
    ORDER_DETAIL = "order_detail"


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(queries, name="queries", epilog=EPILOG)


@queries.command("list")
def list_queries(
    status: Annotated[
        str | None,
        choice("--status", account_queries_pb2.QueryStatus, "Only in this status."),
    ] = None,
    kind: Annotated[Kind | None, typer.Option("--kind", help="Only of this kind.")] = None,
    limit: LimitOption = 50,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """List account queries, the newest first."""
    request = account_queries_pb2.ListQueriesRequest(
        status=number_of(account_queries_pb2.QueryStatus, status), kind=number_of(account_queries_pb2.QueryKind, kind)
    )
    with connected(gateway) as client:
        found = client.pages(client.queries.ListQueries, request, "queries", limit)
    if as_json_:
        list_as_json("queries", found)
        return
    print_table(
        ("query", "site", "kind", "status", "attempts", "held by", "filed", "updated", "error"),
        (
            (
                query.query_id,
                str(Target(query.site, query.account)),
                word(account_queries_pb2.QueryKind, query.kind),
                word(account_queries_pb2.QueryStatus, query.status),
                str(query.attempts),
                query.lease_owner,
                when(query, "created_at"),
                when(query, "updated_at"),
                query.error.message,
            )
            for query in found
        ),
        "no queries",
    )


@queries.command()
def submit(  # noqa: PLR0913, PLR0917 - each is an option of the command
    kind: Annotated[Kind, typer.Argument(metavar="KIND", help="What to read: order_list or order_detail.")],
    task: Annotated[
        str, typer.Option("--task", help="Look for this task: its site, its order number, back to when it was filed.")
    ] = "",
    order_number: Annotated[
        str | None, typer.Option("--order-number", help="order_detail: the site's number of the order.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option("--since", metavar="TIME", help="order_list: read back to here, as in 2026-11-29T00:00:00Z."),
    ] = None,
    max_pages: Annotated[
        int | None, typer.Option("--max-pages", min=1, max=20, help="order_list: read at most so many pages.")
    ] = None,
    site: Annotated[str, typer.Option("--site", help="The site; without it the task's, else rakuten.")] = "",
    account: Annotated[
        str, typer.Option("--account", help="The account; without it the task's, else the site's only account.")
    ] = "",
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for the result; 0: file the query and go.")
    ] = 60,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Have a worker read the account's order list, or one order, on the site, and show what it found.

    Reading has no side effect: this is safe at any time, also while dispatch is paused. A worker that can read the site
    must be running; it takes the query when no order holds the account.
    """
    with connected(gateway) as client:
        if task:
            found_task = client.about(task).get(task)
            site = site or found_task.site
            account = account or found_task.account
            if kind is Kind.ORDER_DETAIL:
                order_number = order_number or _number_of(found_task)
            else:
                since = since or found_task.created_at.ToJsonString()
        request = account_queries_pb2.SubmitQueryRequest(
            site=site,
            account=account,
            kind=number_of(account_queries_pb2.QueryKind, kind),
            params_json=json.dumps(_params(kind, order_number, since, max_pages)),
        )
        filed = client.call(client.queries.SubmitQuery, request)
        found = _ended(client, filed.query_id, wait) if wait else None
    if found is not None:
        _print_query(found, as_json_)
        _end_as(found)
    elif as_json_:
        print_json(as_json(filed))
    else:
        say(f"query {filed.query_id} is filed; {_show(filed.query_id)} shows what was found")


def _number_of(task: orders_pb2.Task) -> str | None:
    """The order number that was told of a task last; None where none was."""
    return next((report.site_order_id for report in reversed(task.reports) if report.site_order_id), None)


def _end_as(found: account_queries_pb2.Query) -> None:
    if found.status in (account_queries_pb2.QUERY_STATUS_FAILED, account_queries_pb2.QUERY_STATUS_EXPIRED):
        raise CommandError(f"nothing was read: {found.error.message}", Exit.FAULT)
    if found.status != account_queries_pb2.QUERY_STATUS_SUCCEEDED:
        lacking = "no worker has taken it yet" if not found.attempts else "it is not answered yet"
        raise CommandError(f"{lacking}; {_show(found.query_id)} shows what was found", Exit.STILL_WAITING)


def _show(query_id: str) -> str:
    return f"`order-gateway queries show {query_id}`"


def _params(kind: Kind, order_number: str | None, since: str | None, max_pages: int | None) -> dict[str, str | int]:
    """What the contract takes for this kind. Raises CommandError for what belongs to the other one."""
    of_list = {"since": since, "max_pages": max_pages}
    of_detail = {"order_number": order_number}
    wanted, other = (of_list, of_detail) if kind is Kind.ORDER_LIST else (of_detail, of_list)
    if any(value is not None for value in other.values()):
        names = " and ".join(f"--{name.replace('_', '-')}" for name in other)
        raise CommandError(f"{names}: not for {kind}", Exit.USAGE)
    if kind is Kind.ORDER_DETAIL and not order_number:
        raise CommandError(
            "--order-number: is required for order_detail (a task whose number nobody told has none)", Exit.USAGE
        )
    return {name: value for name, value in wanted.items() if value is not None}


@queries.command()
def show(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The query's query_id.")],
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Show one query with its result."""
    request = account_queries_pb2.GetQueryRequest(query_id=query)
    with connected(gateway) as client:
        found = client.call(client.queries.GetQuery, request).query
    _print_query(found, as_json_)


def _ended(client: Client, query_id: str, seconds: float) -> account_queries_pb2.Query:
    """The query when it has ended, or as it is when `seconds` have passed."""
    request = account_queries_pb2.WatchQueryRequest(query_id=query_id)
    watch = client.queries.WatchQuery(request, metadata=client.metadata, timeout=seconds)
    try:
        for _ in watch:
            pass
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
            raise
    return client.call(client.queries.GetQuery, account_queries_pb2.GetQueryRequest(query_id=query_id)).query


def _print_query(found: account_queries_pb2.Query, as_json_: bool) -> None:
    if as_json_:
        print_json(as_json(found))
        return
    print_fields(
        (
            ("query", found.query_id),
            ("site", found.site),
            ("kind", word(account_queries_pb2.QueryKind, found.kind)),
            ("status", word(account_queries_pb2.QueryStatus, found.status)),
            ("attempts", str(found.attempts)),
            ("held by", found.lease_owner),
            ("until", when(found, "lease_expires_at")),
            ("filed", when(found, "created_at")),
            ("updated", when(found, "updated_at")),
            ("completed", when(found, "completed_at")),
            ("params", found.params_json),
            ("error", f"{found.error.code} {found.error.message}" if found.HasField("error") else ""),
        )
    )
    if found.HasField("result_json"):
        print_result(json.loads(found.result_json))
