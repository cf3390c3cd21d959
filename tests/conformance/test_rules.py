"""Each rule on a story in which it is kept, and on one in which it is broken."""

from typing import Any

import pytest
from ordergateway.v1 import errors_pb2, orders_pb2
from ordergateway.v1 import order_leases_pb2 as pb

from conformance.gateway import duration
from conformance.rules import RULES
from conformance.story import Call, Outcome, Story, Visit

TOKEN = "t" * 43
TERMS = orders_pb2.Terms(payable_yen=1_080, items=[orders_pb2.TermsItem(item_url="http://shop/item", quantity=1)])
PAUSED, INVALID = errors_pb2.ERROR_REASON_DISPATCH_PAUSED, errors_pb2.ERROR_REASON_LEASE_INVALID


def renewal(at: float, outcome: Outcome = Outcome.ANSWERED, **more: Any) -> Call:
    return Call(at, "RenewLease", pb.RenewLeaseRequest(lease_token=TOKEN), outcome, ended_at=at, **more)


def permit(at: float, outcome: Outcome = Outcome.ANSWERED, terms: orders_pb2.Terms = TERMS, **more: Any) -> Call:
    request = pb.RequestSubmitPermitRequest(lease_token=TOKEN, terms=terms)
    answer = pb.RequestSubmitPermitResponse(valid_for=duration(30))
    return Call(at, "RequestSubmitPermit", request, outcome, ended_at=at, answer=answer, **more)


def report(at: float, sequence: int, state: int, outcome: Outcome = Outcome.ANSWERED, **more: Any) -> Call:
    request = pb.ReportOrderRequest(lease_token=TOKEN, sequence=sequence, state=state)  # type: ignore[arg-type]
    return Call(at, "ReportOrder", request, outcome, ended_at=at, **more)


KEPT = [
    renewal(1), report(2, 1, 1), Visit(3, "cart_add"), Visit(4, "confirm"), report(5, 2, 2, Outcome.LOST),
    report(6, 2, 2), permit(7, Outcome.LOST), permit(8), Visit(9, "submit"),
    report(10, 3, 3), Visit(11, "pay"), report(12, 4, 5),
]  # fmt: skip


def broken(*events: Call | Visit) -> set[str]:
    lease = pb.Lease(lease_token=TOKEN, lease_ttl=duration(60), lease_count=1)
    story = Story([lease], [0.5], sorted(events, key=lambda event: event.at))
    return {rule for rule, judge in RULES.items() if list(judge(story))}


def test_an_obedient_story_breaks_none() -> None:
    assert broken(*KEPT) == set()


@pytest.mark.parametrize(
    ("rule", "events"),
    [
        ("acknowledge-first", (Visit(0.9, "cart_add"),)),
        ("permit-first", (permit(8.5, Outcome.REFUSED, reason=PAUSED), Visit(8.7, "confirm"))),
        ("permit-first", (permit(8.5, Outcome.LOST),)),
        ("click-once", (Visit(9.5, "submit"),)),
        ("pay-once", (Visit(11.5, "pay"),)),
        ("lost-lease", (renewal(4.2, Outcome.REFUSED, reason=INVALID),)),
        ("same-report", (report(13, 5, 5),)),
        ("same-report", (report(13, 4, 4),)),
        ("lost-report-again", (report(13, 5, 6, Outcome.LOST),)),
        ("late-report-once", (report(13, 5, 6, Outcome.REFUSED, recorded_late=True), report(14, 5, 6))),
        ("terms-shown", (permit(7.5, terms=orders_pb2.Terms(payable_yen=1_080)),)),
        ("terms-shown", (permit(7.5, terms=orders_pb2.Terms(payable_yen=1, items=TERMS.items)),)),
        ("confirmed-again", (permit(7.5, Outcome.REFUSED, reason=PAUSED),)),
    ],
)
def test_one_event_more_breaks_that_rule(rule: str, events: tuple[Call | Visit, ...]) -> None:
    assert broken(*KEPT, *events) == {rule}


@pytest.mark.parametrize(("clicked_at", "rules"), [(38.4, set()), (38.6, {"permit-in-time"})])
def test_a_permit_ends_by_its_request(clicked_at: float, rules: set[str]) -> None:
    assert broken(renewal(1), permit(8), Visit(clicked_at, "submit")) == rules


@pytest.mark.parametrize(("written_at", "rules"), [(61.4, set()), (61.6, {"lost-lease"})])
def test_a_lease_ends_by_its_last_renewal(written_at: float, rules: set[str]) -> None:
    assert broken(renewal(1), renewal(30, Outcome.LOST), Visit(written_at, "cart_add")) == rules
