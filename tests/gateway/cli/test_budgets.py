"""`order-gateway budgets`."""

import json

from gateway.api.codec.terms import terms_message
from tests.gateway.cli.command import WHY, Commands
from tests.gateway.support.book import terms
from tests.gateway.support.grpc_api import GrpcApi


async def test_a_budget_is_set_listed_shown_and_removed(api: GrpcApi, commands: Commands) -> None:
    assert (await commands.ok("budgets", "list")).out == "no budget stands\n"
    made = (await commands.ok("budgets", "set", "household", "30000", "--period", "month", *WHY)).out
    for part in ("household", "all orders", "30000", "month"):
        assert part in made
    lease = await api.take()
    await api.permit(lease, terms=terms_message(terms(4_980)))
    (told,) = (await commands.ok("budgets", "list", "--json")).json["budgets"]
    assert (told["budget_id"], told["left_yen"], told["reserved_yen"]) == ("household", "25020", "4980")
    shown = (await commands.ok("budgets", "show", "household")).out
    for part in ("25020", "Asia/Tokyo", "po-1", "4980", "reserved"):
        assert part in shown
    entries = (await commands.ok("budgets", "show", "household", "--json")).json["entries"]
    assert [entry["task_id"] for entry in entries] == ["po-1"]
    assert "household: 25020 of 30000 yen left until" in (await commands.ok("health")).out
    assert "is removed" in (await commands.ok("budgets", "remove", "household", *WHY)).out
    assert (await commands.ok("budgets", "list")).out == "no budget stands\n"
    assert "removed" in (await commands.ok("budgets", "show", "household")).out


async def test_scopes_are_told_in_words(commands: Commands) -> None:
    for name, options, words in (
        ("a", ("--site", "rakuten"), "orders on rakuten"),
        ("b", ("--site", "rakuten", "--account", "acc"), "orders on rakuten/acc"),
        ("c", ("--identity", "alice"), "orders of alice"),
    ):
        made = (await commands.ok("budgets", "set", name, "1", "--period", "day", *options, *WHY)).out
        assert words in made


async def test_what_makes_no_sense_is_refused_in_one_line(commands: Commands) -> None:
    both = ("--site", "rakuten", "--identity", "alice")
    ran = await commands.run("budgets", "set", "a", "1", "--period", "day", *both, *WHY)
    assert ran.code
    assert "scope.identity" in ran.err
    ran = await commands.run("budgets", "show", "nowhere")
    assert ran.code
    assert "there is no budget nowhere" in ran.err
    assert (await commands.run("budgets", "set", "a", "1", "--period", "year", *WHY)).code == 2
    assert json.loads((await commands.ok("budgets", "list", "--json")).out) == {"budgets": []}
