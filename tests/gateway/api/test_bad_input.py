"""Bad input at every RPC: a clear INVALID_ARGUMENT that names the field and the limit, and nothing stored."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import order_leases_pb2

from gateway.api.codec.leases import wait_of
from gateway.api.grpc.incoming import MAX_MESSAGE_BYTES
from gateway.domain.refusals import Reason
from tests.gateway.api.bad_input import CASES, GOOD
from tests.gateway.support import dump
from tests.gateway.support.book import POLICY
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError, connected
from tests.gateway.support.grpc_core import LEASES, ORDERS, grpc_core

METHODS = [(service.full_name, method.name) for service in (ORDERS, LEASES) for method in service.methods]


@dataclass
class Target:
    """A gateway with one queued task, and its file."""

    api: GrpcApi
    path: Path

    async def refused(self, service: str, method: str, data: bytes) -> RefusedCallError:
        """Send bytes that must be refused without a trace in the database."""
        before = dump.dump(self.path)
        with pytest.raises(RefusedCallError) as refused:
            await self.api.raw(f"/{service}/{method}", data)
        assert dump.dump(self.path) == before
        return refused.value


@pytest.fixture
async def target(tmp_path: Path) -> AsyncIterator[Target]:
    path = tmp_path / "gateway.db"
    async with grpc_core(path) as served, connected(served.port) as api:
        await api.submit("po-1")
        yield Target(api, path)


def test_every_method_of_the_contract_has_its_cases() -> None:
    names = {name for _, name in METHODS}
    assert set(CASES) == names
    assert set(GOOD) == names
    for name, cases in CASES.items():
        fields = {case.field.split(".")[0] for case in cases}
        # A truth value can not be wrong.
        assert fields == {field.name for field in GOOD[name].DESCRIPTOR.fields} - {
            "terminal",
            "attests_no_click_record",
            "with_other_orders",
            "stop_before_submit",
            "requires_approval",
            "while_leased",
        }


@pytest.mark.parametrize(("service", "method"), METHODS)
async def test_each_violation_names_its_field_and_limit_and_stores_nothing(
    target: Target, service: str, method: str
) -> None:
    for case in CASES[method]:
        request = type(GOOD[method])()
        request.CopyFrom(GOOD[method])
        for name, value in case.fields.items():
            request.ClearField(name)
            if value is not None:
                request.MergeFrom(type(request)(**{name: value}))
        refusal = await target.refused(service, method, request.SerializeToString())
        assert (refusal.status, refusal.reason) == ("INVALID_ARGUMENT", Reason.INVALID_FIELD), case
        assert list(refusal.fields) == [case.field], case
        assert case.says in refusal.fields[case.field], case
        assert refusal.detail.message.startswith(f"{case.field}: ")
        assert refusal.detail.code == 422


def first_text(message: Message, data: bytes) -> bytes:
    """A message whose first field of text, or that of its first entry, holds these bytes."""
    for field in message.DESCRIPTOR.fields:
        if field.type == field.TYPE_STRING:
            return bytes([field.number << 3 | 2, len(data)]) + data
    (field,) = message.DESCRIPTOR.fields
    entry = first_text(getattr(message, field.name)[0], data)
    return bytes([field.number << 3 | 2, len(entry)]) + entry


@pytest.mark.parametrize(("service", "method"), METHODS)
async def test_bytes_that_are_no_message_and_text_that_is_no_utf_8_are_refused(
    target: Target, service: str, method: str
) -> None:
    no_utf_8 = first_text(GOOD[method], b"\xc3\x28")
    surrogate = first_text(GOOD[method], b"\xed\xa0\x80")
    for data in (b"\xff\xff\xff", b"\x0a\xff", no_utf_8, surrogate):
        refusal = await target.refused(service, method, data)
        assert (refusal.status, list(refusal.fields)) == ("INVALID_ARGUMENT", ["request"])


async def test_fields_that_the_contract_does_not_know_are_passed_over(target: Target) -> None:
    assert 15 not in GOOD["SubmitOrder"].DESCRIPTOR.fields_by_number, "take another number"
    data = GOOD["SubmitOrder"].SerializeToString() + bytes([15 << 3 | 2, 3]) + b"new"
    await target.api.raw("/ordergateway.v1.OrderService/SubmitOrder", data)
    assert (await target.api.task("po-9")).intent_json == "{}"


@pytest.mark.parametrize("method", ["OrderService/SubmitOrder", "OrderLeaseService/LeaseOrders"])
async def test_a_message_over_the_limit_is_refused_with_its_reason(target: Target, method: str) -> None:
    before = dump.dump(target.path)
    with pytest.raises(RefusedCallError) as refused:
        await target.api.raw(f"/ordergateway.v1.{method}", b"\x0a" + b"x" * MAX_MESSAGE_BYTES)
    assert (refused.value.status, refused.value.reason) == ("RESOURCE_EXHAUSTED", Reason.TOO_LARGE)
    with pytest.raises(grpc.aio.AioRpcError) as beyond:
        await target.api.raw(f"/ordergateway.v1.{method}", b"\x0a" + b"x" * 2 * MAX_MESSAGE_BYTES)
    assert beyond.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED, "grpc's own refusal, without a detail"
    assert dump.dump(target.path) == before
    await target.api.submit("po-2")


async def test_the_largest_values_are_taken(target: Target) -> None:
    api = target.api
    key = "a" * 128
    intent = '{"a": "' + "x" * 262_135 + '"}'
    assert len(intent) == 262_144
    await api.cancel("po-1", "r" * 1_000)
    await api.submit(key, intent, callback_url="https://h/" + "a" * 1_990)
    lease = await api.lease(key, session_id="s" * 64, journal_id="j" * 64, wait=0)
    assert lease is not None
    assert lease.intent_json == intent
    await api.renew(lease, key)
    await api.report(
        lease,
        sequence=2**63 - 1,
        worker_id=key,
        payable_yen=2**53 - 1,
        pay_deadline=Timestamp(seconds=253_402_300_799),
        site_order_id="番" * 128,
        evidence_ref="a" * 300,
        detail="詳" * 4_000,
        error_code=99_999,
    )
    (report,) = (await api.task(key)).reports
    assert (report.payable_yen, report.detail, report.error_code) == (2**53 - 1, "詳" * 4_000, 99_999)
    assert report.pay_deadline.seconds == 253_402_300_799


@pytest.mark.parametrize("seconds", [-62_135_596_800, -62_135_596_799, -1, 0, 253_402_300_799])
async def test_every_deadline_that_is_taken_can_be_read_again(target: Target, seconds: int) -> None:
    lease = await target.api.lease()
    assert lease is not None
    await target.api.renew(lease)
    await target.api.report(lease, pay_deadline=Timestamp(seconds=seconds, nanos=999_999_000))
    (report,) = (await target.api.task("po-1")).reports
    assert (report.pay_deadline.seconds, report.pay_deadline.nanos) == (seconds, 999_999_000)


def test_a_wait_above_the_maximum_is_clamped_and_none_is_thirty_seconds() -> None:
    waits = (None, Duration(), Duration(seconds=60), Duration(seconds=61))
    requests = [order_leases_pb2.LeaseOrdersRequest(wait=wait) for wait in waits]
    assert [wait_of(request, POLICY).total_seconds() for request in requests] == [30, 0, 60, 60]
