"""Budgets over the wire: what is taken, what is refused, and what health and lists show of them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from ordergateway.v1 import budgets_pb2

from gateway.api.codec.terms import terms_message
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState
from tests.contract.transports import Clients, clients
from tests.gateway.support.book import terms
from tests.gateway.support.budgets import get_budget, remove_budget, set_budget
from tests.gateway.support.grpc_api import RefusedCallError
from tests.gateway.support.in_process import RunningGateway

NAME = "must be 1 to 64 characters of A-Z a-z 0-9 . _ -"


@pytest.fixture
async def connected(gateway: RunningGateway) -> AsyncIterator[Clients]:
    async with clients(gateway.port, gateway.http_port) as made:
        yield made


@pytest.mark.parametrize(
    ("fields", "field", "says"),
    [
        *(({"budget_id": name}, "budget_id", NAME) for name in ("", "-a", "a b", "é", "a" * 65, "a\n")),
        ({"yen": None}, "limit_yen", "is required"),
        ({"yen": -1}, "limit_yen", "from 0 to 9,007,199,254,740,991"),
        ({"yen": 2**53}, "limit_yen", "from 0 to 9,007,199,254,740,991"),
        ({"period": 0}, "period", "is required: day, week or month"),
        ({"period": 9}, "period", "is required: day, week or month"),
        ({"reason": ""}, "reason", "is required"),
        ({"reason": "a" * 1_001}, "reason", "1,000"),
        ({"scope": {"site": "amazon"}}, "scope.site", "one of the configured sites"),
        ({"scope": {"account": "a"}}, "scope.account", "needs the site"),
        ({"scope": {"account": ""}}, "scope.account", "needs the site"),
        ({"scope": {"site": "rakuten", "account": "-a"}}, "scope.account", NAME),
        ({"scope": {"site": "rakuten", "identity": "alice"}}, "scope.identity", "without a site"),
        ({"scope": {"account": "", "identity": "alice"}}, "scope.identity", "without a site"),
        *(
            ({"scope": {"identity": name}}, "scope.identity", "1 to 32 characters")
            for name in ("Alice", "1a", "a" * 33, "a#2", "a\n")
        ),
        ({"scope": {"identity": "upstream"}}, "scope.identity", "tokens without a name"),
    ],
    ids=str,
)
async def test_each_violation_names_its_field_and_limit_and_stores_nothing(
    gateway: RunningGateway, fields: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(RefusedCallError) as refused:
        await set_budget(gateway.api, **({"budget_id": "house", "yen": 3_000} | fields))
    assert (refused.value.status, refused.value.reason) == ("INVALID_ARGUMENT", Reason.INVALID_FIELD)
    assert list(refused.value.fields) == [field]
    assert says in refused.value.fields[field]
    assert gateway.rows("SELECT 1 FROM budgets") == []


async def test_the_largest_and_the_smallest_values_are_taken(gateway: RunningGateway) -> None:
    api = gateway.api
    assert (await set_budget(api, "a" * 64, 2**53 - 1)).left_yen == 2**53 - 1
    assert (await set_budget(api, "0", 0, scope={"site": "rakuten", "account": "a" * 64})).scope.account == "a" * 64
    only = await set_budget(api, "only", 1, scope={"site": "rakuten", "account": ""})
    assert only.scope.HasField("account")
    assert not (await set_budget(api, "any", 1, scope={"site": "rakuten"})).scope.HasField("account")
    assert (await set_budget(api, "who", 1, scope={"identity": "a" * 32}, reason="é" * 1_000)).set_by == "anonymous"


async def test_an_order_goes_through_a_budget_and_every_list_shows_it(
    gateway: RunningGateway, connected: Clients
) -> None:
    api = gateway.api
    await set_budget(api, "house", 3_000, period=budgets_pb2.BUDGET_PERIOD_MONTH)
    lease = await api.take()
    with pytest.raises(RefusedCallError) as refused:
        await api.permit(lease, terms=terms_message(terms(3_001)))
    assert refused.value.reason is Reason.BUDGET_EXCEEDED
    assert not refused.value.detail.HasField("retry_after")
    await api.permit(lease, terms=terms_message(terms(2_000)))
    shown = (await get_budget(api, "house")).budget
    assert (shown.reserved_yen, shown.settled_yen, shown.left_yen) == (2_000, 0, 1_000)
    assert shown.renews_at.ToDatetime() > shown.starts_at.ToDatetime()
    await api.report(lease, OrderState.PAID, payable_yen=1_900, sequence=1)
    for call in (connected.grpc, connected.connect):
        (listed,) = (await call("OperationsService/ListBudgets")).budgets
        (in_health,) = (await call("OperationsService/GetHealth")).budgets
        assert listed == in_health
        assert (listed.reserved_yen, listed.settled_yen, listed.left_yen) == (0, 1_900, 1_100)
    (over_rest,) = (await connected.rest("GET", "/health"))["budgets"]
    assert (over_rest["budget_id"], over_rest["period"], over_rest["left_yen"]) == ("house", "month", 1_100)
    assert over_rest["site"] is over_rest["identity"] is None


async def test_the_ledger_comes_page_by_page(gateway: RunningGateway) -> None:
    api = gateway.api
    await set_budget(api, "house", 9_000)
    for number in range(3):
        lease = await api.take(f"po-{number}")
        await api.permit(lease, terms=terms_message(terms(1_000 + number)))
        await api.report(lease, OrderState.IN_CART, sequence=1, terminal=True)
    first = await get_budget(api, "house", page_size=2)
    assert [entry.task_id for entry in first.entries] == ["po-2", "po-1"]
    assert first.entries[0].state == budgets_pb2.BUDGET_ENTRY_STATE_RESERVED
    second = await get_budget(api, "house", page_size=2, page_token=first.next_page_token)
    assert [entry.counted_yen for entry in second.entries] == [1_000]
    assert not second.next_page_token
    await set_budget(api, "other", 9_000)
    with pytest.raises(RefusedCallError) as refused:
        await get_budget(api, "other", page_token=first.next_page_token)
    assert list(refused.value.fields) == ["page_token"]


async def test_a_removed_budget_is_listed_no_more_and_shown_still(gateway: RunningGateway, connected: Clients) -> None:
    await set_budget(gateway.api, "house", 3_000)
    await remove_budget(gateway.api, "house")
    assert not (await connected.connect("OperationsService/ListBudgets")).budgets
    assert (await get_budget(gateway.api, "house")).budget.HasField("removed_at")
    with pytest.raises(RefusedCallError) as refused:
        await remove_budget(gateway.api, "house")
    assert refused.value.reason is Reason.BUDGET_NOT_FOUND
