"""A whole worker beside a hostile gateway: it never spins, never clicks on a lie, and says what is wrong in a line."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from ordergateway.v1 import errors_pb2, orders_pb2, query_leases_pb2

from tests.hostile.gateway.lies import FAR, OF_CALLS, OF_LEASES, Lie, nothing, with_fields
from tests.hostile.gateway.server import HostileGateway, serving
from tests.worker.conftest import make_settings
from tests.worker.running_shop import RunningShop, running_shop
from tests.worker.scripted_gateway import Refusal, ScriptedGateway
from tests.worker.virtual import CountedEntropy, ManualClock
from worker.gateway.wire import leased_task
from worker.journal.journal import Journal
from worker.journal.records import JournalEntry, OrderStatus, Outcome
from worker.main import run_worker
from worker.orders.state import OrderState

NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
SUCCEEDED = orders_pb2.TASK_STATUS_SUCCEEDED


@dataclass
class Scene:
    """A hostile gateway, a shop, and workers between them."""

    folder: Path
    gateway: HostileGateway
    target: str
    shop: RunningShop

    @asynccontextmanager
    async def worker(self, **settings: Any) -> AsyncIterator[None]:
        stop = asyncio.Event()
        wanted = make_settings(
            self.folder, order_gateway_url=f"grpc://{self.target}", sandbox_url=self.shop.url, **settings
        )
        running = asyncio.create_task(run_worker(wanted, stop=stop))
        try:
            yield
        finally:
            stop.set()
            await asyncio.wait_for(running, 30)

    def offer(self, task_id: str = "po-1", **fields: Any) -> None:
        intent = json.dumps({"item_url": self.shop.item_url("sencha-100g")})
        self.gateway.orders.offer(task_id, intent, **fields)

    async def submits(self) -> int:
        return int((await self.shop.control.counters())["submits_received"])

    def files(self) -> set[str]:
        """Everything that the worker has put on its disk, but for its journal."""
        return {str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if "trading" not in path.name}


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    gateway = HostileGateway(orders=ScriptedGateway(ttl=30))
    async with serving(gateway) as target, running_shop() as shop:
        yield Scene(tmp_path, gateway, target, shop)


async def said(caplog: pytest.LogCaptureFixture, words: str, seconds: float = 60) -> logging.LogRecord:
    """The first line of the log that holds these words, once it is there."""
    async with asyncio.timeout(seconds):
        while True:
            for record in caplog.records:
                if words in record.getMessage():
                    return record
            await asyncio.sleep(0.01)


def first_of(lies: list[Lie], method: str) -> list[Lie]:
    """One lie of each field; all of them are told apart in test_answers."""
    found: dict[str, Lie] = {}
    for lie in lies:
        if lie.method == method:
            found.setdefault(lie.said, lie)
    return list(found.values())


async def test_a_lease_that_cannot_be_is_not_taken(scene: Scene, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="worker")
    lies = [lie for lie in OF_LEASES if lie.name.startswith(("task_id '../", "count 0"))]
    for lie in lies:
        caplog.clear()
        scene.gateway.bends["LeaseOrders"] = lie.bend
        scene.offer()
        async with scene.worker():
            line = await said(caplog, "the gateway's answer to LeaseOrders cannot be used")
            assert line.getMessage().startswith("nothing is taken, trying again in ")
        assert no_traceback(caplog)
    assert len(lies) == 2
    assert scene.files() == {"evidence"}
    assert scene.gateway.orders.requests("RenewLease") == []
    assert await scene.submits() == 0


@pytest.mark.parametrize("lie", first_of(OF_CALLS, "RenewLease"), ids=str)
async def test_a_lease_that_is_renewed_by_a_lie_is_lost(
    scene: Scene, caplog: pytest.LogCaptureFixture, lie: Lie
) -> None:
    caplog.set_level(logging.INFO, logger="worker")
    scene.gateway.bends["RenewLease"] = lie.bend
    scene.gateway.orders.ack_within = 0.4
    scene.offer()
    async with scene.worker():
        await said(caplog, "the lease could not be acknowledged")
        assert 1 <= len(scene.gateway.orders.requests("RenewLease")) <= 9
    assert no_traceback(caplog)
    assert scene.gateway.orders.reports("po-1") == []
    assert await scene.submits() == 0


@pytest.mark.parametrize("lie", first_of(OF_CALLS, "RequestSubmitPermit"), ids=str)
async def test_a_permit_that_cannot_be_is_none(scene: Scene, monkeypatch: pytest.MonkeyPatch, lie: Lie) -> None:
    monkeypatch.setattr("worker.orders.permit.PERMIT_PATIENCE", 0)
    scene.gateway.bends["RequestSubmitPermit"] = lie.bend
    scene.offer()
    async with scene.worker():
        end = await scene.gateway.orders.end_of("po-1")
    assert end.terminal_status == NEEDS_HUMAN
    assert "the gateway's answer to RequestSubmitPermit cannot be used" in end.detail
    assert "no click was made" in end.detail
    assert await scene.submits() == 0


@pytest.mark.parametrize("valid_for", [None, 0, -1, -FAR])
async def test_a_permit_without_a_time_is_none(scene: Scene, valid_for: int | None) -> None:
    scene.gateway.bends["RequestSubmitPermit"] = with_fields(valid_for=valid_for)
    scene.offer()
    async with scene.worker():
        end = await scene.gateway.orders.end_of("po-1")
    assert (end.terminal_status, "the permit ran out" in end.detail) == (NEEDS_HUMAN, True)
    assert await scene.submits() == 0


async def test_a_report_that_is_answered_by_a_lie_waits_and_goes_out_in_the_end(
    scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    (lie,) = (lie for lie in OF_CALLS if (lie.method, lie.name) == ("ReportOrder", "another task"))
    scene.gateway.bends["ReportOrder"] = lie.bend
    scene.offer()
    async with scene.worker():
        await said(caplog, "report not delivered")
        del scene.gateway.bends["ReportOrder"]
        end = await scene.gateway.orders.end_of("po-1")
    assert end.terminal_status == SUCCEEDED
    states = scene.gateway.orders.states("po-1")
    assert states[:3] == ["created", "created", "in_cart"], "the unheard one again, then the others, in order"
    assert await scene.submits() == 1


@pytest.mark.parametrize("intent", ["", "nonsense", "[]", "[" * 100_000, '{"a": NaN}', "\0", '{"item_url": 1}'])
async def test_an_intent_that_is_none_fails_and_nothing_is_bought(scene: Scene, intent: str) -> None:
    scene.gateway.orders.offer("po-1", intent)
    async with scene.worker():
        end = await scene.gateway.orders.end_of("po-1")
    assert (end.terminal_status, end.error_code) == (orders_pb2.TASK_STATUS_FAILED, 422)
    assert end.detail.startswith("malformed intent: ")
    assert await scene.submits() == 0


@pytest.mark.parametrize("params", ["", "[", "[" * 100_000, "[]", '{"max_pages": 1e999}'])
async def test_query_parameters_that_are_none_fail_the_query(
    scene: Scene, caplog: pytest.LogCaptureFixture, params: str
) -> None:
    lease = query_leases_pb2.QueryLease(query_id="q-1", site="sandbox", kind=1, params_json=params, attempt=1)
    lease.lease_ttl.seconds = 60
    scene.gateway.queries.leases.put_nowait(lease)
    async with scene.worker():
        (report,) = await scene.gateway.queries.told()
    assert report.error.code == 422
    assert no_traceback(caplog)


@pytest.mark.parametrize(
    "known_state", [orders_pb2.ORDER_STATE_ORDERED, orders_pb2.ORDER_STATE_PAID, orders_pb2.ORDER_STATE_CANCELLED]
)
async def test_a_first_lease_of_an_order_that_was_placed_is_verified_and_never_clicked(
    scene: Scene, caplog: pytest.LogCaptureFixture, known_state: int
) -> None:
    scene.offer(known_state=known_state)
    async with scene.worker():
        end = await scene.gateway.orders.end_of("po-1")
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, known_state)
    assert "the click was made or an order was reported, but no order with these items" in end.detail
    assert caplog.text.count("a first lease comes with a state, which cannot be") == 1
    assert scene.gateway.orders.requests("RequestSubmitPermit") == []
    assert await scene.submits() == 0


OTHERS = {
    "another intent": ({"quantity": 2}, "sandbox", "with another intent"),
    "another value of one number": ({"quantity": 1.0}, "sandbox", "with another intent"),
    "another site": ({}, "rakuten", "for the site rakuten, the lease names sandbox"),
}


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "open"])
@pytest.mark.parametrize("name", OTHERS)
async def test_a_task_that_the_journal_holds_with_another_intent_or_site_is_a_persons(
    scene: Scene, name: str, *, ended: bool
) -> None:
    fields, site, words = OTHERS[name]
    intent = {"item_url": scene.shop.item_url("sencha-100g"), "quantity": 1}
    journal = await Journal.open(scene.folder / "trading.db", clock=ManualClock(), new_id=CountedEntropy().token)
    before = scene.gateway.orders.lease("po-1", json.dumps(intent), site=site)
    before.lease_token = "before".ljust(43, "x")
    await journal.orders.take_lease(leased_task(before))
    if ended:
        paid = JournalEntry("ended", OrderState.PAID, OrderStatus.SUCCEEDED, site_order_id="250-1")
        await journal.reports.acknowledge(await journal.orders.record("po-1", paid), Outcome.ACCEPTED, "")
    await journal.close()
    scene.gateway.orders.offer("po-1", json.dumps(intent | fields), lease_count=2)
    async with scene.worker():
        end = await scene.gateway.orders.end_of("po-1")
    assert end.terminal_status == NEEDS_HUMAN
    assert end.detail.startswith("nothing was done by this run: this journal holds the task ")
    assert words in end.detail
    assert end.site_order_id == ("250-1" if ended else "")
    assert (await scene.shop.control.counters())["requests"] == {}


async def test_an_intent_whose_keys_come_in_another_order_is_the_same(scene: Scene) -> None:
    intent = {"item_url": scene.shop.item_url("sencha-100g"), "quantity": 1}
    journal = await Journal.open(scene.folder / "trading.db", clock=ManualClock(), new_id=CountedEntropy().token)
    before = scene.gateway.orders.lease("po-1", json.dumps(intent))
    before.lease_token = "before".ljust(43, "x")
    await journal.orders.take_lease(leased_task(before))
    await journal.close()
    scene.gateway.orders.offer("po-1", json.dumps(dict(reversed(intent.items())), indent=1), lease_count=2)
    async with scene.worker():
        await scene.gateway.orders.end_of("po-1")
    assert await scene.submits() == 1


def no_traceback(caplog: pytest.LogCaptureFixture) -> bool:
    """None of the worker's own; grpc tells of garbage by itself, which `worker.telemetry.logs` switches off."""
    return not [record for record in caplog.records if record.exc_info and record.name != "grpc._common"]


async def seconds_for(gateway: ScriptedGateway, method: str, rounds: int) -> float:
    """From the first call of the method to the one that is so many rounds later, as the gateway saw them."""
    await gateway.called(method, 1 + rounds)
    first, *_, last = gateway.moments[method][: 1 + rounds]
    return last - first


async def test_streams_that_end_at_once_are_opened_once_a_second(scene: Scene) -> None:
    scene.gateway.bends |= {"LeaseOrders": nothing, "LeaseQueries": nothing}
    async with scene.worker():
        assert await seconds_for(scene.gateway.orders, "LeaseOrders", 2) > 1.5
        assert len(scene.gateway.queries.asked) <= len(scene.gateway.orders.requests("LeaseOrders")) + 2


async def test_no_wait_at_all_is_one_round_a_second(scene: Scene) -> None:
    async with scene.worker(lease_wait_seconds=0):
        assert await seconds_for(scene.gateway.orders, "LeaseOrders", 2) > 1.5
        assert len(scene.gateway.queries.asked) <= len(scene.gateway.orders.requests("LeaseOrders")) + 2


@pytest.mark.parametrize(
    ("reason", "retry_after"),
    [
        (errors_pb2.ERROR_REASON_DISPATCH_PAUSED, None),
        (errors_pb2.ERROR_REASON_DISPATCH_PAUSED, 1e-6),
        (errors_pb2.ERROR_REASON_PERMIT_NOT_SETTLED, 0),
        (errors_pb2.ERROR_REASON_PERMIT_NOT_SETTLED, -5),
    ],
)
async def test_a_permit_that_is_put_off_is_asked_for_once_a_second(
    scene: Scene, reason: int, retry_after: float | None
) -> None:
    refusal = Refusal(grpc.StatusCode.ABORTED, reason, retry_after=retry_after)
    scene.gateway.orders.script["RequestSubmitPermit"] = [refusal] * 1_000
    scene.offer()
    async with scene.worker():
        assert await seconds_for(scene.gateway.orders, "RequestSubmitPermit", 1) > 0.7
    assert await scene.submits() == 0


async def test_a_permit_that_is_put_off_for_ever_ends_with_a_person(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("worker.orders.permit.LONGEST_POSTPONEMENT", 0.5)
    refusal = Refusal(grpc.StatusCode.ABORTED, errors_pb2.ERROR_REASON_DISPATCH_PAUSED, retry_after=0)
    scene.gateway.orders.script["RequestSubmitPermit"] = [refusal] * 1_000
    scene.offer()
    async with scene.worker():
        end = await scene.gateway.orders.end_of("po-1")
    assert end.terminal_status == NEEDS_HUMAN
    assert "the permit was put off for too long (DISPATCH_PAUSED)" in end.detail
    assert len(scene.gateway.orders.requests("RequestSubmitPermit")) == 2
    assert await scene.submits() == 0
