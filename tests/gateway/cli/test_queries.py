"""`order-gateway queries submit`: a person has the account looked at, on a gateway with default settings."""

import asyncio
import json
from typing import Any

from common.exit_codes import Exit
from gateway.domain.states import OrderState
from tests.gateway.account_queries.clients import OverGrpc
from tests.gateway.cli.command import Commands, Ran
from tests.gateway.support.grpc_api import GrpcApi
from tests.gateway.support.in_process import RunningGateway

LIST = {
    "kind": "order_list",
    "window_fully_covered": False,
    "orders": [
        {
            "order_number": "250-1",
            "order_date": "2026-11-29T10:00:00Z",
            "shop_name": "煎茶堂",
            "items": [{"item_name": "sencha"}],
        }
    ],
    "raw_pages": ["x" * 100_000],
}


async def answered(commands: Commands, gateway: RunningGateway, words: str, result: dict[str, Any] | None) -> Ran:
    """Run `queries submit` while a worker waits, and answer what it asks for."""
    worker = OverGrpc(gateway.api.channel)
    asked = asyncio.create_task(commands.run("queries", "submit", *words.split()))
    lease = await worker.lease(wait=20)
    assert lease is not None
    await worker.bring(lease, None if result is None else json.dumps(result), code=5001, message="logged out")
    return await asked


async def test_the_order_list_is_shown_without_the_raw_pages(commands: Commands, gateway: RunningGateway) -> None:
    ran = await answered(commands, gateway, "order_list --max-pages 2 --site sandbox", LIST)
    assert ran.code == 0
    assert "250-1         2026-11-29T10:00:00Z  煎茶堂  sencha" in ran.out
    assert "was not read to its end" in ran.out
    assert "xxx" not in ran.out
    (query,) = (await commands.ok("queries", "list", "--json")).json["queries"]
    assert json.loads(query["params_json"]) == {"max_pages": 2}
    shown = await commands.ok("queries", "show", query["query_id"], "--json")
    assert json.loads(shown.json["result_json"]) == LIST


async def test_one_order_is_shown_or_said_not_to_be_there(commands: Commands, gateway: RunningGateway) -> None:
    words = "order_detail --order-number 250-1 --site sandbox"
    found = {"found": True, "order_number": "250-1", "order_state": "cancelled", "raw": "x" * 1_000}
    ran = await answered(commands, gateway, words, found)
    assert "order state   cancelled" in ran.out
    ran = await answered(commands, gateway, words, {"found": False})
    assert ran.code == 0
    assert "does not show this order" in ran.out
    ran = await answered(commands, gateway, words, None)
    assert (ran.code, ran.err) == (Exit.FAULT, "order-gateway: nothing was read: logged out\n")


async def test_a_task_says_where_to_look_and_for_what(
    commands: Commands, gateway: RunningGateway, api: GrpcApi
) -> None:
    await api.submit("po-1", site="sandbox")
    lease = await api.lease("w1")
    assert lease is not None
    await api.renew(lease, "w1")
    refused = await commands.run("queries", "submit", "order_detail", "--task", "po-1")
    assert refused.code == Exit.USAGE
    assert "--order-number: is required" in refused.err
    await api.report(lease, OrderState.ORDERED, site_order_id="250-7")
    assert "煎茶堂" in (await answered(commands, gateway, "order_list --task po-1", LIST)).out
    assert "not show this" in (await answered(commands, gateway, "order_detail --task po-1", {"found": False})).out
    filed = (await commands.ok("tasks", "show", "po-1", "--json")).json["task"]["created_at"]
    detail, listing = (await commands.ok("queries", "list", "--json")).json["queries"]
    assert json.loads(detail["params_json"]) == {"order_number": "250-7"}
    assert json.loads(listing["params_json"]) == {"since": filed}
    assert {detail["site"], listing["site"]} == {"sandbox"}


async def test_without_a_worker_it_says_how_to_go_on(commands: Commands) -> None:
    ran = await commands.run("queries", "submit", "order_list", "--wait", "0.2")
    assert ran.code == Exit.STILL_WAITING
    assert "no worker has taken it yet; `order-gateway queries show " in ran.err
    assert "is filed" in (await commands.ok("queries", "submit", "order_list", "--wait", "0")).out


async def test_what_does_not_fit_the_kind_is_refused_before_anything_is_filed(commands: Commands) -> None:
    for words, said in (
        ("order_detail", "--order-number: is required"),
        ("order_list --order-number 1", "--order-number: not for order_list"),
        ("order_detail --order-number 1 --max-pages 2", "--since and --max-pages: not for order_detail"),
    ):
        ran = await commands.run("queries", "submit", *words.split())
        assert ran.code == Exit.USAGE
        assert said in ran.err
    assert (await commands.ok("queries", "list")).out == "no queries\n"
