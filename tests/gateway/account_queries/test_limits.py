"""What a query and its result may hold, over gRPC and REST."""

import json

import pytest
from ordergateway.v1 import account_queries_pb2

from tests.gateway.account_queries.clients import OverGrpc, Queries
from tests.gateway.account_queries.test_fencing import leased, refused
from tests.gateway.support.grpc_api import RefusedCallError, told
from tests.gateway.support.in_process import RunningGateway

MIB = 1024 * 1024


def result_of(size: int) -> str:
    """A result of so many bytes, some of them of two-byte characters."""
    text = '{"raw":"' + "é" * 1000
    return text + "x" * (size - len(text.encode()) - 2) + '"}'


async def test_a_result_of_one_mebibyte_fits_and_one_byte_more_does_not(queries: Queries) -> None:
    for size in (MIB - 1, MIB):
        lease = await leased(queries, f"of-{size}")
        result = result_of(size)
        assert len(result.encode()) == size
        assert await queries.bring(lease, result) == "succeeded"
        assert (await queries.get(f"of-{size}"))["result"] == json.loads(result)

    lease = await leased(queries, "too-large")
    assert await refused(queries.bring(lease, result_of(MIB + 1))) == 422
    assert (await queries.get("too-large"))["status"] == "leased"
    assert await queries.bring(lease, None, code=413, message="too large") == "failed"


async def test_results_stay_out_of_lists(queries: Queries) -> None:
    for number in range(5):
        await queries.bring(await leased(queries, f"aq-{number}"), result_of(MIB))
    listed = await queries.listed(status="succeeded")
    assert [query["query_id"] for query in listed] == [f"aq-{number}" for number in (4, 3, 2, 1, 0)]
    assert {query["result"] for query in listed} == {None}


async def test_lists_filter_by_status_and_kind(queries: Queries) -> None:
    await queries.submit("list-1")
    await queries.submit("detail-1", kind="order_detail")
    await queries.submit("detail-2", kind="order_detail")
    assert await queries.lease() is not None

    def ids(found: list[dict[str, object]]) -> list[object]:
        return [query["query_id"] for query in found]

    assert ids(await queries.listed()) == ["detail-2", "detail-1", "list-1"]
    assert ids(await queries.listed(kind="order_detail")) == ["detail-2", "detail-1"]
    assert ids(await queries.listed(status="leased")) == ["list-1"]
    assert ids(await queries.listed(status="queued", kind="order_list")) == []


async def test_params_pass_through_value_for_value(queries: Queries) -> None:
    params = '{"b": 1, "a": {"big": 12345678901234567890123, "one": 1.0}, "unknown": [null, "注文"]}'
    await queries.submit(params_json=params)
    lease = await queries.lease()
    assert lease is not None
    assert list(lease["params"]) == ["b", "a", "unknown"]
    assert lease["params"]["a"]["big"] == 12345678901234567890123
    assert lease["params"] == json.loads(params) == (await queries.get())["params"]


async def test_what_is_malformed_is_refused_as_it_is_submitted(queries: Queries) -> None:
    too_deep = '{"a":' * 64 + "{}" + "}" * 64
    for params in ("[]", "1", '{"a":1,"a":2}', '{"a":"\\u0000"}', '{"a":"\\ud800"}', '{"a":1e999}', too_deep):
        assert await refused(queries.submit(params_json=params)) == 422
    # Over REST the whole body is then no JSON.
    assert await refused(queries.submit(params_json='{"a":NaN}')) in (400, 422)
    for query_id in ("lease", "discovery", "-1", "a b", "ü", "a" * 129):
        assert await refused(queries.submit(query_id)) == 422
    assert await refused(queries.submit(site="yahoo")) == 422
    assert await queries.listed() == []


async def test_a_failure_needs_a_message(queries: Queries) -> None:
    lease = await leased(queries)
    assert await refused(queries.bring(lease, None, code=5001)) == 422
    assert await refused(queries.bring(lease, None, message="x" * 4001)) == 422
    assert await queries.bring(lease, None, message="x" * 4000) == "failed"


async def test_the_gateway_makes_an_id_and_takes_rakuten_where_nothing_is_said(grpc_queries: OverGrpc) -> None:
    first = await grpc_queries.submit("", site="")
    second = await grpc_queries.submit("", site="")
    assert first["query_id"] != second["query_id"]
    assert (await grpc_queries.get(first["query_id"]))["site"] == "rakuten"


async def test_health_counts_what_is_queued_and_no_query_is_a_heartbeat(
    queries: Queries, gateway: RunningGateway
) -> None:
    for number in range(3):
        await queries.submit(f"aq-{number}")
    await queries.bring((await queries.lease()) or {})

    health = await gateway.api.health()
    assert (health.queued_query_count, health.queued_count) == (2, 0)
    assert list(health.workers) == []


async def test_a_page_token_of_another_list_is_refused(grpc_queries: OverGrpc) -> None:
    request = account_queries_pb2.ListQueriesRequest(page_token="WzEsIm90aGVyIl0=")
    with pytest.raises(RefusedCallError) as refusal:
        await told(grpc_queries.upstream.ListQueries(request))
    assert "page_token" in refusal.value.fields
