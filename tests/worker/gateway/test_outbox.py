"""Reports go out in order within a task, after a restart too, and no task waits for another."""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
from ordergateway.v1 import errors_pb2
from ordergateway.v1 import order_leases_pb2 as pb

from tests.worker.conftest import make_settings
from tests.worker.journal.test_journal import lease
from tests.worker.scripted_gateway import Refusal, ScriptedGateway, serving
from tests.worker.virtual import CountedEntropy, ManualClock
from worker.gateway.client import GatewayClient, open_channel
from worker.gateway.outbox import Outbox
from worker.gateway.port import GatewayError, Refused, Unreachable
from worker.gateway.wire import leased_task
from worker.journal.journal import Journal
from worker.journal.records import JournalEntry, OrderStatus, Outcome, Report
from worker.orders.state import OrderState


class Reports:
    """The gateway's ear: keeps what it was told, fails as the test says, task by task."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, str]] = []
        self.requests: list[pb.ReportOrderRequest] = []
        self.failures: dict[str, list[GatewayError]] = {}

    async def report(self, request: pb.ReportOrderRequest) -> pb.ReportOrderResponse:
        self.requests.append(request)
        failures = self.failures.get(request.task_id)
        if failures:
            raise failures.pop(0)
        self.told.append((request.task_id, request.sequence, request.lease_token))
        return pb.ReportOrderResponse()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def reports() -> Reports:
    return Reports()


@pytest.fixture
async def journal(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Journal]:
    journal = await Journal.open(tmp_path / "trading.db", clock=clock, new_id=CountedEntropy().token)
    for task_id in ("po-1", "po-2"):
        await journal.orders.take_lease(leased_task(lease(task_id)))
    yield journal
    await journal.close()


@pytest.fixture
async def outbox(journal: Journal, reports: Reports, clock: ManualClock) -> AsyncIterator[Outbox]:
    outbox = Outbox(journal.reports, reports, clock, CountedEntropy(), "worker-1")  # type: ignore[arg-type]
    yield outbox
    await outbox.close()


async def happen(journal: Journal, task_id: str, *states: OrderState) -> None:
    for state in states:
        await journal.orders.record(task_id, JournalEntry(state.value, state))


async def outcomes(journal: Journal, task_id: str) -> list[Outcome | None]:
    return [report.outcome for report in await journal.reports.of_task(task_id)]


async def test_reports_are_delivered_in_order(journal: Journal, reports: Reports, outbox: Outbox) -> None:
    await happen(journal, "po-1", OrderState.CREATED, OrderState.IN_CART, OrderState.ORDERED)
    assert await outbox.deliver("po-1", patience=60)
    assert [sequence for _, sequence, _ in reports.told] == [1, 2, 3]
    assert await outcomes(journal, "po-1") == [Outcome.ACCEPTED] * 3


async def test_an_undelivered_report_holds_up_its_own_task_alone(
    journal: Journal, reports: Reports, outbox: Outbox, clock: ManualClock
) -> None:
    reports.failures["po-1"] = [Unreachable("away")]
    await happen(journal, "po-1", OrderState.CREATED, OrderState.IN_CART)
    await happen(journal, "po-2", OrderState.CREATED)
    assert not await outbox.deliver("po-1", patience=0.05)
    assert await outbox.deliver("po-2", patience=60)
    assert [told[0] for told in reports.told] == ["po-2"]

    await clock.advance(1)
    assert await outbox.deliver("po-1", patience=60)
    assert [sequence for task_id, sequence, _ in reports.told if task_id == "po-1"] == [1, 2]


async def test_what_was_left_goes_out_after_a_restart_under_its_own_token(
    journal: Journal, reports: Reports, outbox: Outbox
) -> None:
    await happen(journal, "po-1", OrderState.CREATED)
    await journal.orders.take_lease(leased_task(lease("po-1", count=2)))
    await happen(journal, "po-1", OrderState.IN_CART)
    await outbox.start()
    assert await outbox.deliver("po-1", patience=60)
    assert [token for _, _, token in reports.told] == ["po-1/1", "po-1/2"]


async def test_a_report_that_the_gateway_kept_late_is_not_sent_again(
    journal: Journal, reports: Reports, outbox: Outbox
) -> None:
    reports.failures["po-1"] = [
        Refused("late", reason=errors_pb2.ERROR_REASON_LEASE_INVALID, recorded_late=True),
        Refused("bad", reason=errors_pb2.ERROR_REASON_INVALID_FIELD),
    ]
    await happen(journal, "po-1", OrderState.CREATED, OrderState.IN_CART, OrderState.ORDERED)
    assert await outbox.deliver("po-1", patience=60)
    assert [sequence for _, sequence, _ in reports.told] == [2, 3]
    assert await outcomes(journal, "po-1") == [Outcome.RECORDED_LATE, Outcome.ACCEPTED, Outcome.ACCEPTED]


INVALID = errors_pb2.ERROR_REASON_INVALID_FIELD
PLACED = JournalEntry(
    "paid", OrderState.PAID, OrderStatus.SUCCEEDED, "po-1/05-payment", "250-1", 1_080, None, "all well", 7
)


def left_in(request: pb.ReportOrderRequest) -> list[str]:
    """The facts that a report still brings."""
    facts = ("site_order_id", "payable_yen", "pay_deadline", "evidence_ref", "error_code")
    return [name for name in facts if request.HasField(name)]


async def test_a_report_that_is_refused_as_invalid_comes_without_what_was_named(
    journal: Journal, reports: Reports, outbox: Outbox
) -> None:
    reports.failures["po-1"] = [Refused("a bad number", reason=INVALID, fields=("site_order_id",))]
    await journal.orders.record("po-1", PLACED)
    assert await outbox.deliver("po-1", patience=60)
    _, again = reports.requests
    assert left_in(again) == ["payable_yen", "evidence_ref", "error_code"]
    assert again.detail.startswith("all well [the gateway refused this report as it was (INVALID_FIELD); left out: ")
    assert "site_order_id '250-1'" in again.detail
    assert (again.state, again.terminal, again.terminal_status) == (5, True, 4)
    assert await outcomes(journal, "po-1") == [Outcome.ACCEPTED]


@pytest.mark.parametrize(
    "reason", [INVALID, errors_pb2.ERROR_REASON_TOO_LARGE, errors_pb2.ERROR_REASON_STATUS_CONFLICT, 999]
)
async def test_a_report_that_is_refused_for_good_comes_with_nothing_left_to_refuse(
    journal: Journal, reports: Reports, outbox: Outbox, reason: int
) -> None:
    refusal = Refused("no", reason=errors_pb2.ErrorReason.ValueType(reason), fields=("detail",))
    reports.failures["po-1"] = [refusal, refusal]
    await journal.orders.record("po-1", PLACED)
    assert await outbox.deliver("po-1", patience=60)
    named, bare = reports.requests[1:]
    assert "all well [" not in named.detail
    assert left_in(bare) == []
    assert bare.detail.isascii()
    for fact in ("site_order_id '250-1'", "payable_yen 1080", "evidence_ref 'po-1/05-payment'", "detail 'all well'"):
        assert fact in bare.detail
    assert (bare.sequence, bare.state, bare.terminal_status) == (1, 5, 4)
    assert await outcomes(journal, "po-1") == [Outcome.ACCEPTED]


async def test_a_report_that_is_refused_in_every_form_waits_and_is_told_once(
    journal: Journal, reports: Reports, outbox: Outbox, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    reports.failures["po-1"] = [Refused("the worker's name", reason=INVALID, fields=("worker_id",))] * 4
    await journal.orders.record("po-1", PLACED)
    assert not await outbox.deliver("po-1", patience=0.05)
    await clock.advance(61)
    assert await outcomes(journal, "po-1") == [None]
    (told,) = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert "in no form, not even without details (INVALID_FIELD: the worker's name). It waits" in told
    await clock.advance(61)
    assert await outbox.deliver("po-1", patience=60)
    assert left_in(reports.requests[-1]) == ["site_order_id", "payable_yen", "evidence_ref", "error_code"]
    assert await outcomes(journal, "po-1") == [Outcome.ACCEPTED]


async def test_a_wrong_token_is_no_reason_to_drop_a_report(
    journal: Journal, reports: Reports, outbox: Outbox, clock: ManualClock
) -> None:
    reports.failures["po-1"] = [Refused("who?", reason=errors_pb2.ERROR_REASON_UNAUTHENTICATED)]
    await happen(journal, "po-1", OrderState.CREATED)
    assert not await outbox.deliver("po-1", patience=0.05)
    await clock.advance(30)
    assert reports.told == []
    await clock.advance(31)
    assert await outbox.deliver("po-1", patience=60)
    assert len(reports.told) == 1


@pytest.mark.parametrize("code", ["UNIMPLEMENTED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "NOT_FOUND"])
async def test_an_answer_that_is_not_the_gateways_own_drops_no_report(
    journal: Journal, clock: ManualClock, tmp_path: Path, code: str
) -> None:
    gateway = ScriptedGateway(script={"ReportOrder": [Refusal(grpc.StatusCode[code])]})
    paid = JournalEntry("paid", OrderState.PAID, site_order_id="N-1", status=OrderStatus.SUCCEEDED)
    await journal.orders.record("po-1", paid)
    async with (
        serving(gateway) as target,
        open_channel(make_settings(tmp_path, order_gateway_url=f"grpc://{target}")) as channel,
    ):
        client = GatewayClient(channel, worker_id="w", session_id="s" * 16, journal_id=journal.journal_id, token="t")
        outbox = Outbox(journal.reports, client, clock, CountedEntropy(), "worker-1")
        assert not await outbox.deliver("po-1", patience=0.5)
        assert await outcomes(journal, "po-1") == [None]
        await clock.advance(1)
        assert await outbox.deliver("po-1", patience=60)
        await outbox.close()
    assert gateway.ended["po-1"].site_order_id == "N-1"
    assert await outcomes(journal, "po-1") == [Outcome.ACCEPTED]


async def test_a_gateway_that_does_not_know_the_task_is_told_once_and_asked_again(
    journal: Journal, reports: Reports, outbox: Outbox, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    reports.failures["po-1"] = [Refused("no such task", reason=errors_pb2.ERROR_REASON_TASK_NOT_FOUND)] * 3
    await happen(journal, "po-1", OrderState.CREATED, OrderState.IN_CART)
    await happen(journal, "po-2", OrderState.CREATED)
    assert not await outbox.deliver("po-1", patience=0.05)
    assert await outbox.deliver("po-2", patience=60)
    for _ in range(2):
        await clock.advance(61)
    assert await outcomes(journal, "po-1") == [None, None]
    (told,) = [record.message for record in caplog.records if record.levelno == logging.ERROR]
    assert "is it on the right database, or was an older backup restored? The report waits" in told
    await clock.advance(61)
    assert await outbox.deliver("po-1", patience=60)
    assert await outcomes(journal, "po-1") == [Outcome.ACCEPTED] * 2


async def test_a_report_written_while_delivery_ends_is_not_forgotten(
    journal: Journal, reports: Reports, outbox: Outbox
) -> None:
    async def write_and_deliver(state: OrderState) -> None:
        await happen(journal, "po-1", state)
        assert await outbox.deliver("po-1", patience=60)

    for _ in range(20):
        await asyncio.gather(*(write_and_deliver(state) for state in (OrderState.CREATED, OrderState.IN_CART)))
    assert [sequence for _, sequence, _ in reports.told] == list(range(1, 41))
    assert await journal.reports.waiting_tasks() == []


async def test_a_report_written_just_after_the_last_look_is_delivered(
    journal: Journal, reports: Reports, outbox: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    next_report = journal.reports.next
    late = iter([OrderState.IN_CART])

    async def looked_a_moment_too_early(task_id: str) -> Report | None:
        report = await next_report(task_id)
        if report is None and (state := next(late, None)) is not None:
            await happen(journal, task_id, state)
            assert not await outbox.deliver(task_id, patience=0)
        return report

    monkeypatch.setattr(journal.reports, "next", looked_a_moment_too_early)
    await happen(journal, "po-1", OrderState.CREATED)
    assert await outbox.deliver("po-1", patience=60)
    assert [sequence for _, sequence, _ in reports.told] == [1, 2]


async def test_a_full_disk_that_is_full_no_more_lets_reports_go_on(
    journal: Journal, reports: Reports, outbox: Outbox, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    await happen(journal, "po-1", OrderState.CREATED)
    with monkeypatch.context() as full:
        full.setattr(journal.reports, "acknowledge", refuse)
        assert not await outbox.deliver("po-1", patience=0.05)
    await clock.advance(1)
    assert await outbox.deliver("po-1", patience=60)
    assert await outcomes(journal, "po-1") == [Outcome.ACCEPTED]


async def test_a_report_that_cannot_be_settled_is_sent_again_ever_later(
    journal: Journal, reports: Reports, outbox: Outbox, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []

    async def refuse(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    async def slept(seconds: float) -> None:
        delays.append(seconds)
        if len(delays) == 6:
            await asyncio.Event().wait()

    monkeypatch.setattr(journal.reports, "acknowledge", refuse)
    monkeypatch.setattr(clock, "sleep", slept)
    await happen(journal, "po-1", OrderState.CREATED)
    assert not await outbox.deliver("po-1", patience=1)
    assert delays == [0.375, 0.75, 1.5, 3, 6, 12]
    assert len(reports.told) == 6
