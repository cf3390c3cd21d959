"""OperationsService over gRPC: what it refuses field by field, its pages, a decision on the wire."""

from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import operations_pb2 as pb
from ordergateway.v1 import order_leases_pb2, orders_pb2

from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError, told
from tests.gateway.support.in_process import RunningGateway

WHY = "looked at the site"
SUCCEEDED = orders_pb2.TASK_STATUS_SUCCEEDED
REQUEUE = pb.DECISION_KIND_REQUEUE
SEEN = [pb.SeenTask(task_id="po-1", updated_at=Timestamp(seconds=1))]
INVALID: dict[str, tuple[Any, str]] = {
    "no reason": (pb.RequeueOrderRequest(task_id="po-1"), "reason"),
    "blank reason": (pb.WithdrawOrderRequest(task_id="po-1", reason="  "), "reason"),
    "long reason": (pb.ExpireOrderRequest(task_id="po-1", reason="x" * 1_001), "reason"),
    "no task": (pb.RequeueOrderRequest(reason=WHY), "task_id"),
    "no outcome": (pb.ResolveOrderRequest(task_id="po-1", reason=WHY), "outcome"),
    "other outcome": (
        pb.ResolveOrderRequest(task_id="po-1", reason=WHY, outcome=orders_pb2.TASK_STATUS_NEEDS_HUMAN),
        "outcome",
    ),
    "unknown state": (
        pb.ResolveOrderRequest(task_id="po-1", reason=WHY, outcome=SUCCEEDED, state=99),  # type: ignore[arg-type]
        "state",
    ),
    "empty number": (
        pb.ResolveOrderRequest(task_id="po-1", reason=WHY, outcome=SUCCEEDED, site_order_id=""),
        "site_order_id",
    ),
    "unknown site": (pb.PauseDispatchRequest(site="nowhere", reason=WHY), "site"),
    "no decision": (pb.ListDecisionOutcomesRequest(filter=orders_pb2.TaskFilter(site="rakuten")), "decision"),
    "unknown decision": (pb.DecideOrdersRequest(decision=99, reason=WHY, tasks=SEEN), "decision"),  # type: ignore[arg-type]
    "a decision about all there is": (pb.ListDecisionOutcomesRequest(decision=REQUEUE), "filter"),
    "an order of all there is": (
        pb.ListDecisionOutcomesRequest(
            decision=REQUEUE, filter=orders_pb2.TaskFilter(order=orders_pb2.TASK_ORDER_OLDEST_FIRST)
        ),
        "filter",
    ),
    "filter of an unknown site": (
        pb.ListDecisionOutcomesRequest(decision=REQUEUE, filter=orders_pb2.TaskFilter(site="nowhere")),
        "filter.site",
    ),
    "token of another filter": (
        pb.ListDecisionOutcomesRequest(
            decision=REQUEUE, filter=orders_pb2.TaskFilter(site="rakuten"), page_token="WzFd"
        ),
        "page_token",
    ),
    "decided about nothing": (pb.DecideOrdersRequest(decision=REQUEUE, reason=WHY), "tasks"),
    "decided about too many": (pb.DecideOrdersRequest(decision=REQUEUE, reason=WHY, tasks=SEEN * 201), "tasks"),
    "decided twice": (pb.DecideOrdersRequest(decision=REQUEUE, reason=WHY, tasks=SEEN * 2), "tasks[1].task_id"),
    "decided without reason": (pb.DecideOrdersRequest(decision=REQUEUE, tasks=SEEN), "reason"),
    "decided unseen": (
        pb.DecideOrdersRequest(decision=REQUEUE, reason=WHY, tasks=[pb.SeenTask(task_id="po-1")]),
        "tasks[0].updated_at",
    ),
    "pause without reason": (pb.PauseDispatchRequest(), "reason"),
    "resume without reason": (pb.ResumeDispatchRequest(), "reason"),
    "worker's name": (pb.ForgetWorkerRequest(worker_id="../x", reason=WHY), "worker_id"),
    "page size": (pb.ListDecisionsRequest(page_size=201), "page_size"),
    "negative page size": (pb.ListEventsRequest(page_size=-1), "page_size"),
    "foreign page token": (pb.ListDecisionsRequest(page_token="WzFd"), "page_token"),
    "no page token": (pb.ListAlertsRequest(page_token="~"), "page_token"),
    "many kinds": (pb.ListEventsRequest(kinds=["lease"] * 33), "kinds"),
    "kind": (pb.ListEventsRequest(kinds=["lease,submit"]), "kinds"),
    "time": (pb.ListEventsRequest(since=Timestamp(seconds=2**40)), "since"),
    "alert kind": (pb.ListAlertsRequest(kind=99), "kind"),  # type: ignore[arg-type]
    "no such alert": (pb.ClearAlertRequest(alert_id=7, reason=WHY), "alert_id"),
    "alert without reason": (pb.ClearAlertRequest(alert_id=7), "reason"),
}


async def call(api: GrpcApi, request: Any) -> Any:
    name = type(request).__name__.removesuffix("Request")
    return await told(getattr(api.operations, name)(request))


async def test_what_makes_no_sense_is_refused_by_field_and_changes_nothing(
    gateway: RunningGateway, api: GrpcApi
) -> None:
    await api.submit()
    before = gateway.dump()
    for case, (request, field) in INVALID.items():
        with pytest.raises(RefusedCallError) as refused:
            await call(api, request)
        assert refused.value.reason is Reason.INVALID_FIELD, case
        assert [violation.field for violation in refused.value.detail.violations] == [field], case
    assert gateway.dump() == before


async def test_a_decision_on_the_wire(gateway: RunningGateway, api: GrpcApi) -> None:
    lease = await api.take()
    await api.report(lease, OrderState.IN_CART, evidence_ref="po-1/02-cart-check")
    gateway.time.advance(301)
    again = await api.reclaim(session_id="session-that-reclaims")
    await api.renew(again)
    gateway.time.advance(10)
    look = order_leases_pb2.Verification(
        verdict=order_leases_pb2.Verification.VERDICT_UNKNOWN, evidence_ref="po-1/r2/00-verify"
    )
    look.begun_at_lease_age.FromSeconds(3)
    with pytest.raises(RefusedCallError):
        await api.permit(again, verification=look)
    gateway.time.advance(301)
    with pytest.raises(RefusedCallError):
        await api.report(again, OrderState.ORDERED, site_order_id="250-1")

    (decision,) = (await call(api, pb.ListDecisionsRequest())).decisions

    assert decision.task.task_id == "po-1"
    assert decision.task.placement == orders_pb2.PLACEMENT_CERTAIN
    assert decision.summary.startswith("An order is certain: a late report of w1 at")
    assert decision.last_verification == look
    (late,) = decision.late_reports
    assert (late.worker_id, late.report.site_order_id) == ("w1", "250-1")
    assert not late.report.HasField("reported_at")
    assert late.received_at.ToSeconds() > 0
    assert [alert.kind for alert in decision.alerts] == [pb.ALERT_KIND_TASK_STALE, pb.ALERT_KIND_LATE_REPORT]
    assert decision.settles_in.ToSeconds() == 900


async def test_page_tokens_belong_to_their_filters(api: GrpcApi) -> None:
    for number in range(4):
        await api.submit(f"po-{number}")
    first = await call(api, pb.ListEventsRequest(page_size=3))
    rest = await call(api, pb.ListEventsRequest(page_size=3, page_token=first.next_page_token))
    assert [event.subject for event in (*first.events, *rest.events)] == ["po-3", "po-2", "po-1", "po-0"]
    assert rest.next_page_token == ""
    with pytest.raises(RefusedCallError):
        await call(api, pb.ListEventsRequest(kinds=["submit"], page_token=first.next_page_token))


async def test_a_site_that_is_no_longer_configured_can_be_resumed(gateway: RunningGateway, api: GrpcApi) -> None:
    gateway.pause("retired-shop")
    answer = await call(api, pb.ResumeDispatchRequest(site="retired-shop", reason=WHY))
    assert list(answer.pauses) == []
