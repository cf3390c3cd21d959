"""Over REST goes no task on which a permit would judge a condition (docs/specification.md#leases-over-rest)."""

from dataclasses import replace
from typing import Any

import pytest

from gateway.domain.leases import Lease
from gateway.domain.models import RestLeases
from gateway.domain.refusals import Reason
from gateway.orders.expire import expire_due
from tests.gateway.support.book import Book, refused

LATER = "2026-12-29T15:58:22.123456Z"
CONDITIONS: list[dict[str, Any]] = [{"max_total_yen": 3_000}, {"not_after": LATER}, {"stop_before_submit": True}]


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: next(iter(condition)))
def test_a_task_with_a_condition_waits_for_grpc_and_lets_others_pass(book: Book, condition: dict[str, Any]) -> None:
    book.submit("with", **condition)
    assert book.open(book.rest_request()) is None
    book.submit("plain")
    lease = book.open(book.rest_request())
    assert lease is not None
    assert lease.task_id == "plain"
    book.report(lease, terminal=True)
    assert book.open(book.rest_request()) is None
    over_grpc = book.open()
    assert over_grpc is not None
    assert over_grpc.task_id == "with"


def test_a_cap_of_the_gateway_keeps_every_task_from_rest(book: Book) -> None:
    book.policy = replace(book.policy, permit_max_yen=3_000)
    book.submit()
    assert book.open(book.rest_request()) is None
    assert book.open() is not None


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: next(iter(condition)))
def test_all_hands_everything_out(book: Book, condition: dict[str, Any]) -> None:
    book.policy = replace(book.policy, rest_leases=RestLeases.ALL, permit_max_yen=3_000)
    book.submit(**condition)
    assert book.open(book.rest_request()) is not None


def test_a_time_before_which_it_is_not_wanted_is_no_condition_of_the_permit(book: Book) -> None:
    book.submit(not_before="2026-11-29T15:58:22.123456Z")
    assert book.open(book.rest_request()) is not None


@pytest.mark.parametrize("condition", CONDITIONS, ids=lambda condition: next(iter(condition)))
def test_it_is_not_reclaimed_over_rest_either(book: Book, condition: dict[str, Any]) -> None:
    book.submit(**condition)
    book.lapse(book.take())
    book.run(expire_due)
    refusal = refused(book.reclaim("po-1", book.rest_request()))
    assert refusal.reason is Reason.STATUS_CONFLICT
    assert "RAKUTEN_REST_LEASES" in refusal.message
    assert isinstance(book.reclaim("po-1", book.request(session="session-after-reclaim")), Lease)
