"""The rule of repetition, watches, pages and batches, against a channel and a time that the test moves."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from queue import Queue
from typing import Any

import grpc
import pytest
from ordergateway.client import (
    CancelTooLateError,
    DeadlineExceededError,
    GatewayError,
    InvalidFieldError,
    NotFoundError,
    RefusedError,
    StatusConflictError,
    TooManyError,
    UnansweredError,
    order,
)
from ordergateway.v1 import errors_pb2, orders_pb2

from tests.clients.python.fake_gateway import KEY, FakeGateway, detail, fake_gateway

Code = grpc.StatusCode
FILED = orders_pb2.SubmitOrderResponse(task_id="po-1", created=True)


@pytest.fixture
def gateway() -> Iterator[FakeGateway]:
    with fake_gateway() as made:
        yield made


def submitted(gateway: FakeGateway, **more: Any) -> Any:
    return gateway.begin(lambda: gateway.client.submit("po-1", "sandbox", {"items": []}, **more))


@pytest.mark.parametrize("code", [Code.UNAVAILABLE, Code.CANCELLED, Code.ABORTED, Code.UNKNOWN, Code.INTERNAL])
@pytest.mark.parametrize("metadata", [(), ((KEY, b"\xff"),), (("other", "x"),)], ids=["bare", "unreadable", "other"])
def test_a_lost_answer_is_asked_for_again_whatever_its_code(gateway: FakeGateway, code: Code, metadata: Any) -> None:
    answer = submitted(gateway)
    requests = [gateway.fail("SubmitOrder", code, metadata) for _ in range(7)]
    requests.append(gateway.answer("SubmitOrder", FILED))
    assert answer.result(60) == FILED
    assert {(request.task_id, request.intent_json) for request in requests} == {("po-1", '{"items": []}')}
    assert gateway.pauses == [0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]


@pytest.mark.parametrize("reason", ["STORE_UNAVAILABLE", "SHUTTING_DOWN"])
def test_a_gateway_that_cannot_just_now_is_asked_again(gateway: FakeGateway, reason: str) -> None:
    answer = submitted(gateway)
    gateway.fail("SubmitOrder", Code.UNAVAILABLE, detail(reason))
    gateway.answer("SubmitOrder", FILED)
    assert answer.result(60).created


def test_a_time_to_wait_is_waited(gateway: FakeGateway) -> None:
    answer = submitted(gateway)
    gateway.fail("SubmitOrder", Code.RESOURCE_EXHAUSTED, detail("TOO_MANY", retry_after=7))
    gateway.answer("SubmitOrder", FILED)
    assert answer.result(60).created
    assert gateway.pauses == [7.2]


def test_one_that_is_longer_than_the_deadline_is_the_caller_s(gateway: FakeGateway) -> None:
    answer = submitted(gateway, timeout=7)
    gateway.fail("SubmitOrder", Code.RESOURCE_EXHAUSTED, detail("TOO_MANY", retry_after=7))
    with pytest.raises(TooManyError) as refused:
        answer.result(60)
    assert refused.value.retry_after == timedelta(seconds=7)


def test_a_gateway_that_cannot_just_now_is_asked_until_the_deadline(gateway: FakeGateway) -> None:
    answer = submitted(gateway, timeout=3)
    for _ in range(5):
        gateway.fail("SubmitOrder", Code.UNAVAILABLE, detail("SHUTTING_DOWN"))
    with pytest.raises(RefusedError) as refused:
        answer.result(60)
    assert refused.value.reason == errors_pb2.ERROR_REASON_SHUTTING_DOWN
    assert gateway.now() == pytest.approx(1_003.0)


@pytest.mark.parametrize("code", [Code.UNIMPLEMENTED, Code.RESOURCE_EXHAUSTED])
def test_what_is_likely_to_stay_wrong_is_tried_three_times(gateway: FakeGateway, code: Code) -> None:
    answer = submitted(gateway)
    for _ in range(3):
        gateway.fail("SubmitOrder", code)
    with pytest.raises(UnansweredError, match=code.name) as unanswered:
        answer.result(60)
    assert not isinstance(unanswered.value, DeadlineExceededError)


def test_a_fault_of_the_gateway_too(gateway: FakeGateway) -> None:
    answer = submitted(gateway)
    for _ in range(3):
        gateway.fail("SubmitOrder", Code.INTERNAL, detail("INTERNAL"))
    with pytest.raises(RefusedError) as refused:
        answer.result(60)
    assert refused.value.reason == errors_pb2.ERROR_REASON_INTERNAL


def test_at_the_deadline_the_caller_learns_what_was_wrong(gateway: FakeGateway) -> None:
    answer = submitted(gateway, timeout=3)
    for _ in range(5):
        gateway.fail("SubmitOrder", Code.UNAVAILABLE)
    with pytest.raises(DeadlineExceededError, match="UNAVAILABLE"):
        answer.result(60)
    assert gateway.pauses == pytest.approx([0.2, 0.4, 0.8, 1.6])
    assert gateway.now() == pytest.approx(1_003.0)


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("INVALID_FIELD", InvalidFieldError),
        ("TASK_NOT_FOUND", NotFoundError),
        ("STATUS_CONFLICT", StatusConflictError),
        ("CANCEL_TOO_LATE", CancelTooLateError),
        ("TOO_MANY", TooManyError),
        ("FEATURE_OFF", RefusedError),
    ],
)
def test_a_refusal_is_an_exception_of_its_reason_at_once(
    gateway: FakeGateway, reason: str, kind: type[RefusedError]
) -> None:
    answer = gateway.begin(lambda: gateway.client.cancel("po-1", "no longer wanted"))
    told = detail(
        reason,
        current_status=orders_pb2.TASK_STATUS_LEASED,
        allowed=["renew"],
        violations=[errors_pb2.FieldViolation(field="reason", description="is required")],
    )
    gateway.fail("CancelOrder", Code.FAILED_PRECONDITION, told)
    with pytest.raises(RefusedError, match=f"refused: {reason}") as refused:
        answer.result(60)
    assert type(refused.value) is kind
    assert refused.value.reason_name == reason
    assert refused.value.current_status == orders_pb2.TASK_STATUS_LEASED
    assert (refused.value.allowed, refused.value.retry_after) == (("renew",), None)
    assert refused.value.violations == {"reason": "is required"}
    assert gateway.pauses == []


def message(status: int, **fields: Any) -> orders_pb2.WatchOrderResponse:
    task: Any = orders_pb2.Task(task_id="po-1", status=status, **fields)  # type: ignore[arg-type]
    return orders_pb2.WatchOrderResponse(task=task)


QUEUED, LEASED, RUNNING, SUCCEEDED = (message(status) for status in (1, 2, 3, 4))
HEARTBEAT = orders_pb2.WatchOrderResponse(heartbeat=orders_pb2.Heartbeat())


def test_a_watch_goes_on_after_each_loss_and_tells_each_change_once(gateway: FakeGateway) -> None:
    told: Queue[int] = Queue()
    watched = gateway.begin(lambda: [told.put(task.status) for task in gateway.client.watch("po-1")])
    call = gateway.take_watch()
    for each in (QUEUED, HEARTBEAT, LEASED):
        call.send_response(each)
    # What was not read yet is lost with the connection.
    assert [told.get(timeout=60), told.get(timeout=60)] == [1, 2]
    call.terminate((), Code.UNKNOWN, "the connection broke")
    call = gateway.take_watch()
    call.send_response(LEASED)
    call.terminate((), Code.OK, "")
    call = gateway.take_watch()
    renewed = message(2)
    renewed.task.lease_expires_at.FromDatetime(datetime(2026, 12, 1, tzinfo=UTC))
    renewed.task.updated_at.FromDatetime(datetime(2026, 12, 1, tzinfo=UTC))
    for each in (renewed, RUNNING, RUNNING, SUCCEEDED):
        call.send_response(each)
    call.terminate((), Code.OK, "")
    assert len(watched.result(60)) == 4
    assert [told.get_nowait(), told.get_nowait()] == [3, 4]
    assert gateway.pauses == [0.2, 0.2], "each stream that brought something begins the backoff anew"


@pytest.mark.parametrize("metadata", [(), detail("SHUTTING_DOWN")], ids=["bare", "stopping"])
def test_who_waits_at_a_terminal_is_told_at_once(gateway: FakeGateway, metadata: Any) -> None:
    answer = gateway.begin(lambda: gateway.once.get("po-1"))
    gateway.fail("GetOrder", Code.UNAVAILABLE, metadata)
    with pytest.raises(GatewayError):
        answer.result(60)
    watched = gateway.begin(lambda: list(gateway.once.watch("po-1")))
    gateway.take_watch().terminate((), Code.UNAVAILABLE, "")
    with pytest.raises(UnansweredError):
        watched.result(60)
    assert gateway.pauses == []


def test_even_so_a_watch_that_was_answered_goes_on(gateway: FakeGateway) -> None:
    told: Queue[int] = Queue()
    watched = gateway.begin(lambda: [told.put(task.status) for task in gateway.once.watch("po-1")])
    call = gateway.take_watch()
    call.send_response(QUEUED)
    assert told.get(timeout=60) == 1
    call.terminate((), Code.UNAVAILABLE, "")
    call = gateway.take_watch()
    call.send_response(SUCCEEDED)
    call.terminate((), Code.OK, "")
    assert len(watched.result(60)) == 2


def test_who_stops_watching_ends_the_call(gateway: FakeGateway) -> None:
    watch = gateway.client.watch("po-1")
    first = gateway.begin(lambda: next(watch))
    call = gateway.take_watch()
    call.send_response(QUEUED)
    assert first.result(60).status == 1
    watch.close()
    call.cancelled()


def test_a_watch_of_a_task_that_is_not_there_is_refused(gateway: FakeGateway) -> None:
    changes = gateway.begin(lambda: list(gateway.client.watch("po-1")))
    gateway.take_watch().terminate(detail("TASK_NOT_FOUND"), Code.NOT_FOUND, "")
    with pytest.raises(NotFoundError):
        changes.result(60)


def test_a_list_goes_on_behind_an_empty_page_and_not_in_a_circle(gateway: FakeGateway) -> None:
    found = gateway.begin(lambda: [task.task_id for task in gateway.client.list(page_size=1)])
    tokens = []
    for task_id, following in (("po-3", "a"), ("", "b"), ("po-1", "b")):
        request, call = gateway.take("ListOrders")
        tokens.append(request.page_token)
        tasks = [orders_pb2.Task(task_id=task_id)] if task_id else []
        page = orders_pb2.ListOrdersResponse(tasks=tasks, next_page_token=following)
        call.terminate(page, (), Code.OK, "")
    assert found.result(60) == ["po-3", "po-1"]
    assert tokens[0] == ""


def test_many_go_in_batches_and_a_refusal_keeps_its_place(gateway: FakeGateway) -> None:
    orders = [order(f"po-{number}", "sandbox", "{}") for number in range(501)]
    results = gateway.begin(lambda: list(gateway.client.submit_many(orders)))
    filed = orders_pb2.SubmitOrdersResult(submitted=FILED)
    gateway.answer("SubmitOrders", orders_pb2.SubmitOrdersResponse(results=[filed] * 500))
    refusal = orders_pb2.SubmissionRefusal(index=0, field="orders[0].site", description="must be a site")
    gateway.answer(
        "SubmitOrders", orders_pb2.SubmitOrdersResponse(results=[orders_pb2.SubmitOrdersResult(refusal=refusal)])
    )
    told = results.result(60)
    assert len(told) == 501
    assert (told[500].refusal.index, told[500].refusal.field) == (500, "orders[500].site")


def test_batches_are_bounded_in_bytes_and_an_order_needs_its_own_task_id(gateway: FakeGateway) -> None:
    orders = [order(f"po-{number}", "sandbox", {"note": "x" * 300_000}) for number in range(4)]
    results = gateway.begin(lambda: list(gateway.client.submit_many(orders)))
    sizes = []
    for count in (3, 1):
        filed = [orders_pb2.SubmitOrdersResult(submitted=FILED)] * count
        request = gateway.answer("SubmitOrders", orders_pb2.SubmitOrdersResponse(results=filed))
        sizes.append(len(request.orders))
    assert (sizes, len(results.result(60))) == ([3, 1], 4)
    with pytest.raises(ValueError, match="task_id"):
        list(gateway.client.submit_many([order("", "sandbox", {})]))
    with pytest.raises(ValueError, match="task_id"):
        gateway.client.submit("", "sandbox", {})


def test_fields_are_python_s_own_values() -> None:
    made = order(
        "po-1", "sandbox", {"amount": 12345678901234567890, "note": "煎茶"},
        labels={"team": "tea"}, max_total_yen=5000, not_before=datetime(2026, 12, 1, tzinfo=UTC),
    )  # fmt: skip
    assert made.intent_json == '{"amount": 12345678901234567890, "note": "煎茶"}'
    assert (dict(made.labels), made.max_total_yen) == ({"team": "tea"}, 5000)
    assert made.not_before.ToDatetime(UTC) == datetime(2026, 12, 1, tzinfo=UTC)
    with pytest.raises(ValueError, match="not_after has no time zone"):
        order("po-1", "sandbox", {}, not_after=datetime(2026, 12, 1))  # noqa: DTZ001 - the point of it
    with pytest.raises(ValueError, match="JSON"):
        order("po-1", "sandbox", {"amount": float("nan")})
