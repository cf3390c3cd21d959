"""A lease belongs to the named token that took it, on every transport; a token without a name may rotate under it."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gateway.account_queries.lease import open_query_lease
from gateway.account_queries.result import report_result
from gateway.account_queries.submit import submit_query
from gateway.domain.account_queries import (
    QueryKind,
    QueryLease,
    QueryLeaseRequest,
    QueryOutcome,
    QueryStatus,
    QuerySubmission,
)
from gateway.domain.leases import Lease, Permit, Renewed
from gateway.domain.models import Reported
from gateway.domain.refusals import Reason
from tests.gateway.account_queries.test_rules import POLICY as QUERY_POLICY
from tests.gateway.support.book import Book, reason
from tests.gateway.support.in_process import RunningGateway, running_gateway
from tests.gateway.support.manual_time import ManualTime
from tests.gateway.support.rest_api import data_of, envelope_of, lease, post, rest_client, submit

ALICE, BOB, PLAIN = "alices-secret-0123456789", "bobs-secret-0123456789", "a-secret-without-a-name"
SESSION = "session-of-a-worker"


def taken(book: Book, identity: str) -> Lease:
    book.submit()
    lease = book.open(book.request(identity=identity))
    assert lease is not None
    return lease


@pytest.mark.parametrize("stranger", ["bob", "worker", "worker#2", "anonymous"])
def test_a_lease_of_a_named_token_is_no_other_s(book: Book, stranger: str) -> None:
    lease = taken(book, "alice")
    assert book.open(book.request(identity=stranger)) is None, "not given again either"
    assert reason(book.renew(lease, identity=stranger)) is Reason.LEASE_INVALID
    assert isinstance(book.renew(lease, identity="alice"), Renewed)
    assert reason(book.permit(lease, identity=stranger)) is Reason.LEASE_INVALID
    assert isinstance(book.permit(lease, identity="alice"), Permit)
    assert reason(book.report(lease, holder=book.holder(lease, identity=stranger))) is Reason.LEASE_INVALID
    assert isinstance(book.report(lease, holder=book.holder(lease, identity="alice")), Reported)


@pytest.mark.parametrize(("before", "after"), [("worker#2", "worker"), ("worker", "alice"), ("api", "worker")])
def test_a_token_without_a_name_may_rotate_while_a_lease_lives(book: Book, before: str, after: str) -> None:
    lease = taken(book, before)
    assert book.open(book.request(identity=after)) == lease
    assert isinstance(book.renew(lease, identity=after), Renewed)


def queried(book: Book, identity: str) -> QueryLease | None:
    return book.run(open_query_lease, QUERY_POLICY, QueryLeaseRequest("w1", SESSION, ("sandbox",), identity=identity))


def brought(book: Book, identity: str, attempt: int | None) -> Any:
    told = QueryOutcome("q-1", "w1", attempt, result_json="{}", identity=identity)
    return book.run(report_result, QUERY_POLICY, told, lambda *_: None)


@pytest.mark.parametrize("attempt", [1, None])
@pytest.mark.parametrize("stranger", ["bob", "worker"])
def test_a_query_of_a_named_token_is_no_other_s(book: Book, stranger: str, attempt: int | None) -> None:
    book.run(submit_query, QUERY_POLICY, QuerySubmission("q-1", "sandbox", QueryKind.ORDER_LIST, "{}"), "upstream")
    first = queried(book, "alice")
    assert first is not None
    assert queried(book, stranger) is None, "not given again either"
    again = queried(book, "alice")
    assert again is not None
    assert replace(again, lives_for=first.lives_for) == first
    assert reason(brought(book, stranger, attempt)) is Reason.QUERY_LEASE_INVALID
    assert brought(book, "alice", attempt) is QueryStatus.SUCCEEDED


@pytest.fixture
async def guarded(tmp_path: Path, time: ManualTime) -> AsyncIterator[RunningGateway]:
    tokens = {"worker_token": f"{PLAIN},alice={ALICE},bob={BOB}", "upstream_token": "an-upstream-token-01"}
    async with running_gateway(tmp_path, time, **tokens) as running:
        yield running


async def test_over_rest_a_name_alone_is_not_enough(guarded: RunningGateway) -> None:
    async with rest_client(guarded.http_port, "an-upstream-token-01") as upstream:
        await submit(upstream)
        query = {"query_id": "q-1", "site": "sandbox", "kind": "order_list", "params": {}}
        data_of(await post(upstream, "/api/account/queries", query))
    async with rest_client(guarded.http_port, ALICE) as alice:
        await lease(alice)
        data_of(await alice.get("/api/account/queries/lease", params={"worker_id": "w1", "wait": 0}))
        for secret in (BOB, PLAIN):
            async with rest_client(guarded.http_port, secret) as other:
                for path in ("renew", "report"):
                    body = {"worker_id": "w1"} | ({"state": "created"} if path == "report" else {})
                    answer = await post(other, f"/api/orders/po-1/{path}", body)
                    assert (path, envelope_of(answer)["code"]) == (path, 6002)
                result = {"worker_id": "w1", "success": True, "result": {}}
                answer = await post(other, "/api/account/queries/q-1/result", result)
                assert envelope_of(answer)["code"] == 6006
        data_of(await post(alice, "/api/orders/po-1/renew", {"worker_id": "w1"}))
        data_of(await post(alice, "/api/account/queries/q-1/result", result))
