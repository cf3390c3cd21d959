"""The one error table: every reason has its row, its name in the contract, and reaches the caller whole."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import grpc
import pytest
from ordergateway.v1 import errors_pb2, orders_pb2

from gateway.api.errors import ERRORS, refusal_of
from gateway.domain.refusals import Reason, Refusal, RefusedError, Violation
from gateway.domain.states import TaskStatus
from gateway.store.port import StoreUnavailableError
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError, connected, duration, heartbeat_of, told
from tests.gateway.support.grpc_core import LEASES, ORDERS, served
from tests.gateway.support.in_process import RunningGateway


class Raises:
    """A service whose every method raises what the test says."""

    def __init__(self) -> None:
        self.error: Exception = RuntimeError()

    async def get_order(self, _request: Any, _call: Any) -> Any:
        raise self.error

    async def watch_order(self, _request: Any, _call: Any) -> AsyncIterator[Any]:
        yield orders_pb2.WatchOrderResponse(heartbeat=orders_pb2.Heartbeat())
        raise self.error

    def __getattr__(self, _name: str) -> Any:
        return self.get_order


@pytest.fixture
def raises() -> Raises:
    return Raises()


@pytest.fixture
async def client(raises: Raises) -> AsyncIterator[GrpcApi]:
    async with served({ORDERS: raises, LEASES: raises}) as server, connected(server.port) as api:
        yield api


async def refusal(call: Any) -> RefusedCallError:
    with pytest.raises(RefusedCallError) as refused:
        await told(call)
    return refused.value


def test_every_reason_has_a_row_and_a_name_in_the_contract_and_nothing_else_has() -> None:
    assert set(ERRORS) == set(Reason)
    names = {f"ERROR_REASON_{reason.name}" for reason in Reason}
    assert names | {"ERROR_REASON_UNSPECIFIED"} == set(errors_pb2.ErrorReason.keys())
    for answer in ERRORS.values():
        assert answer.status in grpc.StatusCode.__members__
        assert answer.code in range(6001, 6007) or answer.code == answer.http


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (Reason.TASK_NOT_FOUND, 6001),
        (Reason.LEASE_INVALID, 6002),
        (Reason.STATUS_CONFLICT, 6003),
        (Reason.ANOTHER_TASK_ACTIVE, 6004),
        (Reason.QUERY_NOT_FOUND, 6005),
        (Reason.QUERY_LEASE_INVALID, 6006),
    ],
)
def test_the_documented_codes_are_kept(reason: Reason, code: int) -> None:
    assert ERRORS[reason].code == code


async def test_every_row_reaches_the_caller_with_all_that_it_says(client: GrpcApi, raises: Raises) -> None:
    for reason in Reason:
        raises.error = RefusedError(
            Refusal(
                reason,
                f"because of {reason}",
                violations=(Violation("a.b", "is wrong"),),
                current_status=TaskStatus.STALE,
                allowed=("reclaim",),
                recorded_late=True,
                retry_after=timedelta(seconds=1.5),
            )
        )
        for call in (client.orders.GetOrder(orders_pb2.GetOrderRequest()), _last(client)):
            refused = await refusal(call)
            assert (refused.status, refused.reason) == (ERRORS[reason].status, reason)
            detail = refused.detail
            assert (detail.code, detail.message) == (ERRORS[reason].code, f"because of {reason}")
            assert refused.fields == {"a.b": "is wrong"}
            assert detail.current_status == orders_pb2.TASK_STATUS_STALE
            assert (list(detail.allowed), detail.recorded_late, detail.retry_after) == (
                ["reclaim"],
                True,
                duration(1.5),
            )


async def _last(client: GrpcApi) -> None:
    async for _ in client.watch():
        pass


async def test_a_fault_is_logged_and_its_text_stays_inside(
    client: GrpcApi, raises: Raises, caplog: pytest.LogCaptureFixture
) -> None:
    raises.error = LookupError("a secret of the inside")
    for call in (client.orders.GetOrder(orders_pb2.GetOrderRequest()), _last(client)):
        refused = await refusal(call)
        assert (refused.status, refused.reason) == ("INTERNAL", Reason.INTERNAL)
        assert "secret" not in str(refused.detail)
    assert caplog.text.count("a secret of the inside") == 2


def test_a_store_that_can_not_write_is_unavailable_and_says_nothing_of_its_inside() -> None:
    refused = refusal_of(StoreUnavailableError("/data/gateway.db: database or disk is full"))
    assert refused.reason is Reason.STORE_UNAVAILABLE
    assert "/data" not in refused.message


async def test_a_method_that_is_not_there_is_unimplemented(client: GrpcApi) -> None:
    for path in ("/ordergateway.v1.OrderService/Nothing", "/a.B/C", "/"):
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await client.raw(path, b"")
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_long_message_in_any_script_still_reaches_the_caller(client: GrpcApi, raises: Raises) -> None:
    for text in ("詳" * 4_000, "a" * 20_000, "😀" * 2_000, 'quo"te\r\n' * 500):
        raises.error = RefusedError(Refusal(Reason.DISPATCH_PAUSED, text, violations=(Violation("a", text),)))
        refused = await refusal(client.orders.GetOrder(orders_pb2.GetOrderRequest()))
        assert refused.reason is Reason.DISPATCH_PAUSED
        assert refused.detail.message[:50] == text[:50]


async def test_a_pause_with_a_long_reason_is_told_as_a_pause(gateway: RunningGateway, api: GrpcApi) -> None:
    lease = await api.take()
    gateway.pause(why="一時停止" * 250)
    refused = await refusal(api.permit(lease))
    assert (refused.status, refused.reason) == ("ABORTED", Reason.DISPATCH_PAUSED)
    assert refused.detail.HasField("retry_after")


async def test_bytes_that_are_no_message_are_refused_where_no_field_can_be_wrong(api: GrpcApi) -> None:
    refused = await refusal(api.raw("/ordergateway.v1.OperationsService/GetHealth", b"\xff\xff"))
    assert (refused.status, list(refused.fields)) == ("INVALID_ARGUMENT", ["request"])


async def test_a_full_disk_is_unavailable_over_the_wire_and_what_waits_goes_on(
    gateway: RunningGateway, api: GrpcApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = api.stream(wait=20)
    await heartbeat_of(stream)
    # Its heartbeat comes before its wait is written down.
    while not gateway.rows("SELECT * FROM workers"):  # noqa: ASYNC110 - the database gives no signal
        await asyncio.sleep(0.01)

    def full(*_: Any) -> None:
        failure = StoreUnavailableError("the database cannot take writes now: database or disk is full")
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr("gateway.store.gathering.GatheringWriter.submit", full)
        for call in (api.submit(), api.lease("w2")):
            refused = await refusal(call)
            assert (refused.status, refused.reason) == ("UNAVAILABLE", Reason.STORE_UNAVAILABLE)
    await api.submit()
    message = await stream.read()
    assert message.lease.task_id == "po-1"  # type: ignore[union-attr]
