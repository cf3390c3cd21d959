"""`order-gateway catalog`: the account's orders as the site shows them, compared with the tasks."""

from typing import Annotated

import typer
from ordergateway.v1 import account_queries_pb2, catalog_pb2, orders_pb2

from common.output import print_json
from common.tables import print_fields, print_table
from common.target import Target
from gateway.cli.client import connected
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import AccountOption, GatewayOption, JsonOption, LimitOption, ReadAccountOption, SiteOption
from gateway.cli.output import as_json, list_as_json, when, word

catalog = typer.Typer(help="Look at the order catalogue, and compare it with the tasks.", no_args_is_help=True)

ReadSiteOption = Annotated[str, typer.Option("--site", help="The site to read; without it the first configured one.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(catalog, name="catalog", epilog=EPILOG)


@catalog.command("list")
def list_orders(
    site: SiteOption = "",
    account: AccountOption = "",
    limit: LimitOption = 50,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """List the account's orders as the site showed them, the latest seen first."""
    request = catalog_pb2.ListCatalogOrdersRequest(site=site, account=account)
    with connected(gateway) as client:
        found = client.pages(client.catalog.ListCatalogOrders, request, "orders", limit)
    if as_json_:
        list_as_json("orders", found)
        return
    print_table(
        ("site", "order number", "shop", "ordered", "delivery", "order", "last seen"),
        (
            (
                str(Target(order.site, order.account)),
                order.order_number,
                order.shop_name,
                when(order, "order_date"),
                order.delivery_status,
                word(orders_pb2.OrderState, order.order_state),
                when(order, "last_seen_at"),
            )
            for order in found
        ),
        "the catalogue is empty",
    )


@catalog.command()
def discover(
    site: ReadSiteOption = "",
    account: ReadAccountOption = "",
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Have a worker read the site's order list into the catalogue now, instead of at the next interval.

    It files an account query for it, which `order-gateway queries show` shows; while one is under way, no second
    is filed.
    """
    with connected(gateway) as client:
        done = client.call(client.catalog.Discover, catalog_pb2.DiscoverRequest(site=site, account=account))
    if as_json_:
        print_json(as_json(done))
        return
    print_fields(
        (
            ("query", done.query_id),
            ("status", word(account_queries_pb2.QueryStatus, done.status)),
            ("filed", "now" if done.created else "before; it is still under way"),
        )
    )


@catalog.command()
def discrepancies(
    site: SiteOption = "",
    account: AccountOption = "",
    limit: LimitOption = 50,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """List where tasks and the site's order list do not agree."""
    request = catalog_pb2.ListDiscrepanciesRequest(site=site, account=account)
    with connected(gateway) as client:
        found = client.pages(client.catalog.ListDiscrepancies, request, "discrepancies", limit)
    if as_json_:
        list_as_json("discrepancies", found)
        return
    print_table(
        ("kind", "site", "order number", "task", "found", "explanation"),
        (
            (
                word(catalog_pb2.DiscrepancyKind, item.kind),
                str(Target(item.site, item.account)),
                item.order_number,
                item.task_id,
                when(item, "found_at"),
                item.explanation,
            )
            for item in found
        ),
        "tasks and sites agree",
    )
