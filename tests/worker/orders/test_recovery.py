"""A task that was in hand before is looked for on the site first, and never bought twice or paid for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from ordergateway.v1 import errors_pb2, orders_pb2
from ordergateway.v1 import order_leases_pb2 as pb

from tests.worker.conftest import Bench
from tests.worker.scripted_gateway import Refusal
from tests.worker.virtual import CountedEntropy, ManualClock
from worker.gateway.bounds import Bounds
from worker.gateway.wire import leased_task
from worker.journal.journal import Journal
from worker.sites.port import OrderList
from worker.sites.sandbox.adapter import SandboxSite

SUCCEEDED = orders_pb2.TASK_STATUS_SUCCEEDED
FAILED = orders_pb2.TASK_STATUS_FAILED
NEEDS_HUMAN = orders_pb2.TASK_STATUS_NEEDS_HUMAN
ORDERED = orders_pb2.ORDER_STATE_ORDERED


async def test_a_task_that_the_journal_has_ended_is_reported_and_not_done_again(bench: Bench) -> None:
    await bench.execute()
    del bench.gateway.ended["po-1"]
    end = await bench.execute(lease_count=2)
    assert (end.terminal_status, end.state) == (SUCCEEDED, orders_pb2.ORDER_STATE_PAID)
    assert end.lease_token == "po-1-2".ljust(43, "x")
    assert len(bench.gateway.reports("po-1")) == 7
    assert await bench.ordered() == 1


async def test_what_ended_before_anything_was_placed_is_begun_again_from_the_queue(bench: Bench) -> None:
    """A person has put what was in the way right, and requeued the task."""
    await bench.shop.control.arm("logged_out", "cart_add")
    await bench.shop.control.change_account(login_refused=True)
    first = await bench.execute()
    assert (first.terminal_status, first.error_code) == (NEEDS_HUMAN, 5001)
    del bench.gateway.ended["po-1"]
    await bench.shop.control.disarm()
    await bench.shop.control.change_account(login_refused=False)
    again = await bench.execute(lease_count=2)
    assert (again.state, again.HasField("error_code")) == (ORDERED, False)
    assert "a recovered run never pays" in again.detail
    assert await bench.ordered() == 1


async def test_what_ended_before_anything_was_placed_is_only_told_again_to_who_reclaims_it(bench: Bench) -> None:
    await bench.shop.control.change_account(login_refused=True, end_sessions=True)
    await bench.execute()
    del bench.gateway.ended["po-1"]
    await bench.shop.control.change_account(login_refused=False)
    bench.gateway.reclaimable["po-1"] = bench.gateway.lease("po-1", bench.intent(), lease_count=2)
    async with bench.worker():
        number = await bench.in_journal(
            lambda journal: journal.reclaims.file("po-1", requested_by="ann", reason="look")
        )
        await bench.end_of_reclaim_request(number)
    assert bench.gateway.ended["po-1"].terminal_status == NEEDS_HUMAN
    assert await bench.ordered() == 0
    (asked,) = bench.gateway.requests("ReclaimOrder")
    assert isinstance(asked, pb.ReclaimOrderRequest)
    assert (asked.requested_by, asked.reason) == ("ann", "look")


async def test_what_was_clicked_is_never_begun_again_from_the_queue(bench: Bench) -> None:
    await bench.shop.control.arm("reset", "submit")
    assert (await bench.execute()).terminal_status == NEEDS_HUMAN
    del bench.gateway.ended["po-1"]
    end = await bench.execute(lease_count=2)
    assert end.terminal_status == NEEDS_HUMAN
    assert (await bench.shop.control.counters())["submits_received"] == 1


async def test_a_first_lease_of_what_needed_a_person_begins_nothing_again(bench: Bench) -> None:
    """No person has requeued it: the gateway was set back to an older backup."""
    await bench.shop.control.change_account(login_refused=True, end_sessions=True)
    await bench.execute()
    del bench.gateway.ended["po-1"]
    await bench.shop.control.change_account(login_refused=False)
    lease = bench.gateway.lease("po-1", bench.intent())
    lease.lease_token = "forgotten".ljust(43, "x")
    bench.gateway.leases.put_nowait(lease)
    async with bench.worker():
        end = await bench.gateway.end_of("po-1")
    assert (end.terminal_status, end.error_code) == (NEEDS_HUMAN, 5001)
    assert await bench.ordered() == 0


async def test_what_was_found_on_the_site_is_never_begun_again_either(bench: Bench) -> None:
    await bench.shop.control.arm("lost", "order_detail", count=None)  # so that it is not known to be paid
    number = await bench.shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    first = await bench.execute(lease_count=2)
    assert (first.terminal_status, first.site_order_id) == (NEEDS_HUMAN, number)
    del bench.gateway.ended["po-1"]
    end = await bench.execute(lease_count=3)
    assert (end.terminal_status, end.site_order_id) == (NEEDS_HUMAN, number)
    assert end.evidence_ref.startswith("po-1/r2/"), "the same end is told again, and nothing is looked at"


async def test_a_recovered_task_is_verified_first_and_the_permit_quotes_it(bench: Bench) -> None:
    end = await bench.execute(lease_count=2)
    assert end.terminal_status == NEEDS_HUMAN
    words = f"a recovered run never pays: pay order {end.site_order_id} on the site by hand, then resolve the task"
    assert words in end.detail
    assert end.state == ORDERED
    (permit,) = bench.gateway.requests("RequestSubmitPermit")
    assert isinstance(permit, pb.RequestSubmitPermitRequest)
    assert permit.attests_no_click_record
    assert permit.verification.verdict == pb.Verification.VERDICT_NOT_ORDERED
    assert permit.verification.window_fully_covered
    assert permit.verification.evidence_ref == "po-1/r2/00-verify"
    assert permit.verification.begun_at_lease_age.seconds >= 1
    assert (bench.folder / "evidence/po-1/r2/00-verify.html").is_file()
    assert bench.gateway.states("po-1")[0] == "in_cart"
    assert await bench.ordered() == 1


async def test_a_recovered_task_that_is_on_the_site_is_reported_and_not_bought_again(bench: Bench) -> None:
    number = await bench.shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    end = await bench.execute(lease_count=2)
    assert end.site_order_id == number
    assert end.evidence_ref.startswith("po-1/r2/00-verify")
    assert await bench.ordered() == 0  # the one there is was placed elsewhere


async def test_a_creation_that_is_still_to_come_says_nothing(bench: Bench) -> None:
    """The gateway's clock was once far ahead; where to begin to look is not known."""
    await bench.shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    created = Timestamp()
    created.FromDatetime(datetime.now(UTC) + timedelta(days=30))
    end = await bench.execute(lease_count=2, task_created_at=created)
    assert end.terminal_status == NEEDS_HUMAN
    assert "which is still to come" in end.detail
    assert await bench.ordered() == 0


async def test_the_look_begins_where_the_journal_knows_the_task_from(bench: Bench) -> None:
    """The gateway's clock was ahead by days when the task was filed, and time has caught up since."""
    months_ago = ManualClock()
    journal = await Journal.open(bench.folder / "trading.db", clock=months_ago, new_id=CountedEntropy().token)
    lease = pb.Lease(task_id="po-1", site="sandbox", intent_json=bench.intent(), lease_count=1, lease_token="the first")
    await journal.orders.take_lease(leased_task(lease))
    await journal.close()
    number = await bench.shop.control.add_order({"code": "sencha-100g", "quantity": 1}, days_ago=5)
    end = await bench.execute(lease_count=2)
    assert end.site_order_id == number
    assert await bench.ordered() == 0


async def test_a_recovered_task_leaves_out_orders_of_other_tasks(bench: Bench) -> None:
    number = await bench.shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    end = await bench.execute(lease_count=2, other_site_order_ids=[number])
    assert end.state == ORDERED
    assert end.site_order_id != number
    assert await bench.ordered() == 1


async def test_a_number_that_the_gateway_learnt_after_the_lease_is_left_out(bench: Bench) -> None:
    number = await bench.shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    bench.gateway.others = pb.OtherOrders(site_order_ids=[number])
    end = await bench.execute(lease_count=2)
    assert end.site_order_id not in ("", number)
    asked = [request.with_other_orders for request in bench.gateway.requests("RenewLease")]  # type: ignore[attr-defined]
    assert asked.count(True) == 1
    assert await bench.ordered() == 1


@pytest.mark.parametrize("others", [pb.OtherOrders(incomplete=True), None], ids=["incomplete", "not told"])
async def test_a_match_proves_nothing_while_it_may_be_another_tasks(
    bench: Bench, others: pb.OtherOrders | None
) -> None:
    number = await bench.shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    bench.gateway.others = others
    end = await bench.execute(lease_count=2)
    assert (end.terminal_status, end.site_order_id) == (NEEDS_HUMAN, "")
    assert f"order {number} may belong to another task" in end.detail
    assert await bench.ordered() == 0


async def test_a_lost_click_of_a_first_run_is_not_told_with_an_order_that_may_be_anothers(bench: Bench) -> None:
    number = await bench.shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    bench.gateway.others = pb.OtherOrders(incomplete=True)
    await bench.shop.control.arm("reset", "submit")
    end = await bench.execute()
    assert (end.terminal_status, end.state, end.site_order_id) == (NEEDS_HUMAN, orders_pb2.ORDER_STATE_IN_CART, "")
    assert f"order {number} may belong to another task" in end.detail


async def test_orders_that_only_the_journal_knows_for_other_tasks_are_left_out_too(bench: Bench) -> None:
    async with bench.worker():
        bench.gateway.offer("po-1", bench.intent())
        other = await bench.gateway.end_of("po-1")
        bench.gateway.offer("po-2", bench.intent(), lease_count=2)
        end = await bench.gateway.end_of("po-2")
    assert end.state == ORDERED
    assert end.site_order_id != other.site_order_id
    assert await bench.ordered() == 2


async def test_a_first_lease_of_a_task_that_the_journal_knows_is_a_recovered_one(bench: Bench) -> None:
    # The gateway was set back to an older backup, and so has forgotten that the task was leased.
    forgotten = bench.gateway.lease("po-1", bench.intent())
    forgotten.lease_token = "forgotten".ljust(43, "x")
    journal = await Journal.open(bench.folder / "trading.db", clock=ManualClock(), new_id=CountedEntropy().token)
    await journal.orders.take_lease(leased_task(forgotten))
    await journal.close()
    number = await bench.shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    end = await bench.execute(lease_count=1)
    assert end.site_order_id == number
    assert end.evidence_ref.startswith("po-1/r2/00-verify")
    assert await bench.ordered() == 0


async def test_a_look_counts_from_its_beginning(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.gateway.lease_guard.BETWEEN_RENEWALS", Bounds(0.03, 0.03))
    calls_before_the_look: list[int] = []
    list_orders = SandboxSite.list_orders

    async def while_renewed(self: SandboxSite, **window: Any) -> OrderList:
        calls_before_the_look.append(len(bench.gateway.calls))  # no renewal until now told a greater age
        renewals = len(bench.gateway.requests("RenewLease"))
        listed = await list_orders(self, **window)
        await bench.gateway.called("RenewLease", renewals + 3)
        return listed

    monkeypatch.setattr(SandboxSite, "list_orders", while_renewed)
    end = await bench.execute(lease_count=2)
    assert end.state == ORDERED
    (permit,) = bench.gateway.requests("RequestSubmitPermit")
    assert isinstance(permit, pb.RequestSubmitPermitRequest)
    assert permit.verification.begun_at_lease_age.seconds <= calls_before_the_look[0]


async def test_two_orders_that_could_be_it_need_a_human(bench: Bench) -> None:
    for _ in range(2):
        await bench.shop.control.add_order({"code": "sencha-100g", "quantity": 1})
    end = await bench.execute(lease_count=2)
    assert end.terminal_status == NEEDS_HUMAN
    assert "several orders" in end.detail
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_a_recovered_task_told_as_ordered_but_not_found_needs_a_human(bench: Bench) -> None:
    end = await bench.execute(lease_count=2, known_state=ORDERED)
    assert (end.terminal_status, end.state) == (NEEDS_HUMAN, ORDERED)
    assert (await bench.shop.control.counters())["submits_received"] == 0


async def test_an_unsettled_site_is_waited_for_and_verified_again(bench: Bench) -> None:
    unsettled = Refusal(grpc.StatusCode.ABORTED, errors_pb2.ERROR_REASON_PERMIT_NOT_SETTLED, retry_after=0.1)
    bench.gateway.script["RequestSubmitPermit"] = [unsettled]
    end = await bench.execute(lease_count=2)
    assert end.state == ORDERED
    first, second = bench.gateway.requests("RequestSubmitPermit")
    assert isinstance(first, pb.RequestSubmitPermitRequest)
    assert isinstance(second, pb.RequestSubmitPermitRequest)
    assert (first.verification.evidence_ref, second.verification.evidence_ref) == (
        "po-1/r2/00-verify",
        "po-1/r2/00-verify-2",
    )
    later, sooner = second.verification.begun_at_lease_age, first.verification.begun_at_lease_age
    assert later.seconds > sooner.seconds
    assert await bench.ordered() == 1


async def test_a_wish_to_reclaim_interrupts_the_wait_and_is_executed(bench: Bench) -> None:
    bench.gateway.reclaimable["po-9"] = bench.gateway.lease("po-9", bench.intent(), lease_count=2)
    async with bench.worker():
        await bench.gateway.called("LeaseOrders")
        number = await bench.in_journal(lambda journal: journal.reclaims.file("po-9"))
        unknown = await bench.in_journal(lambda journal: journal.reclaims.file("po-404"))
        await bench.gateway.end_of("po-9")
        done, refused = await bench.end_of_reclaim_request(number), await bench.end_of_reclaim_request(unknown)
    assert done.status == "done"
    assert (refused.status, refused.note.split(":")[0]) == ("refused", "TASK_NOT_FOUND")


async def test_failed_is_told_again_only_where_the_task_was_in_no_other_hands(bench: Bench) -> None:
    for task_id, second_lease in (("po-1", 2), ("po-2", 3)):
        await bench.execute(task_id, bench.intent("earphones-soldout"))
        del bench.gateway.ended[task_id]
        await bench.execute(task_id, bench.intent("earphones-soldout"), lease_count=second_lease)
    assert bench.gateway.ended["po-1"].terminal_status == FAILED
    assert bench.gateway.ended["po-2"].terminal_status == NEEDS_HUMAN
    assert "in other hands" in bench.gateway.ended["po-2"].detail


async def test_trouble_of_a_recovered_task_is_never_told_as_failed(bench: Bench) -> None:
    await bench.shop.control.arm("error", "cart_add")
    end = await bench.execute(lease_count=2)
    assert end.terminal_status == NEEDS_HUMAN
    assert "nothing was clicked by this run" in end.detail


@pytest.mark.parametrize("fault", ["redesign", "error", "reset", "lost", "logged_out"])
async def test_an_order_list_that_cannot_be_read_says_nothing(bench: Bench, fault: str) -> None:
    await bench.shop.control.arm(fault, "order_list", count=None)
    end = await bench.execute(lease_count=2)
    assert end.terminal_status == NEEDS_HUMAN
    assert "not known whether the order was placed" in end.detail
    assert bench.gateway.requests("RequestSubmitPermit") == []
    assert (await bench.shop.control.counters())["submits_received"] == 0
