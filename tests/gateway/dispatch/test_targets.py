"""Whoever waits is looked at when something of its targets changes, and not otherwise."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from common.target import Target
from gateway.dispatch.lines import Lines
from gateway.dispatch.waiter import Waiter
from gateway.domain.hints import hint, hinted
from gateway.domain.leases import Holder, Lease, LeaseRequest
from gateway.domain.models import Actor, NewReport, Submission
from gateway.domain.states import OrderState
from gateway.orders.report import report
from gateway.orders.submit import submit
from tests.gateway.dispatch.test_dispatcher import in_line
from tests.gateway.support.core import Core, running_core

A, B, ONLY = Target("rakuten", "a"), Target("rakuten", "b"), Target("rakuten")


@pytest.fixture
async def core(tmp_path: Path) -> AsyncIterator[Core]:
    async with running_core(tmp_path / "gateway.db") as running:
        yield running


@pytest.mark.parametrize(
    ("notified", "concerned"),
    [
        ({"queue", hint("queue", A)}, {A}),
        ({"queue", hint("queue", A), hint("queue", ONLY)}, {A, ONLY}),
        ({"queue", hint("queue", A), hint("queue", None)}, None),
        ({"queue"}, None),
        ({"other", hint("other", A)}, set()),
        (set(), set()),
    ],
)
def test_a_hint_names_its_targets_or_all(notified: set[str], concerned: set[Target] | None) -> None:
    assert hinted("queue", notified) == concerned


async def test_lines_keep_the_order_of_coming_by_target() -> None:
    lines: Lines[LeaseRequest, Lease] = Lines()

    def waiter(*accounts: str) -> Waiter[LeaseRequest, Lease]:
        return Waiter(LeaseRequest("w", None, None, ("rakuten",), None, "worker", accounts))  # type: ignore[arg-type]

    first, second, third = waiter("a"), waiter("b", "a"), waiter("b")
    for one in (first, second, third):
        lines.join(one)
    assert lines.snapshot(None) == {A: (first, second), B: (second, third)}
    assert lines.snapshot({B, ONLY}) == {B: (second, third)}
    assert (lines.joined_since(1), lines.joined_since(2), lines.joined_since(3)) == ({A, B}, {B}, set())
    lines.leave(second)
    lines.leave(second)
    assert lines.snapshot(None) == {A: (first,), B: (third,)}
    lines.leave(first)
    assert (lines.snapshot(None), len(lines), [*lines]) == ({B: (third,)}, 1, [third])


def of(core: Core, account: str) -> LeaseRequest:
    return core.request(f"w-{account}", sites=("rakuten",), accounts=(account,))


async def file(core: Core, task_id: str, account: str) -> None:
    wanted = Submission(task_id, "rakuten", "{}", None, account=account)
    await core.store.write(submit, core.policy, wanted, Actor("upstream"))


@pytest.fixture
def asked(core: Core, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whose take was tried, beside its opening; the poll is off, so only hints lead there."""
    tried: list[str] = []
    take = core.dispatcher._source.take

    async def no_look(_targets: Any) -> None:
        pass

    def take_and_tell(tx: Any, now: Any, request: LeaseRequest) -> Lease | None:
        tried.append(request.worker_id)
        return take(tx, now, request)

    monkeypatch.setattr(core.dispatcher, "_look", no_look)
    monkeypatch.setattr(core.dispatcher._source, "take", take_and_tell)
    return tried


async def test_an_order_asks_those_alone_who_wait_for_its_target(core: Core, asked: list[str]) -> None:
    waiting = {account: await in_line(core, of(core, account)) for account in ("a", "b", "c")}
    await file(core, "po-1", "b")
    lease = await asyncio.wait_for(waiting["b"].lease(), 60)
    assert lease is not None
    assert (lease.task_id, lease.account, asked) == ("po-1", "b", ["w-b"])
    await file(core, "po-2", "d")
    assert asked == ["w-b"]
    for account in ("a", "c"):
        await waiting[account].cancel()


async def test_the_end_of_an_order_asks_those_whom_its_slot_kept_waiting(core: Core, asked: list[str]) -> None:
    await file(core, "po-1", "a")
    held = await core.lease(of(core, "a"))
    assert held is not None
    waiting = {account: await in_line(core, of(core, account)) for account in ("b", "c")}
    await file(core, "po-2", "c")
    asked.clear()
    end = NewReport(OrderState.CREATED, None, None, None, None, "", None, 1, True, None)
    await core.store.write(report, Holder("po-1", "w-a", held.token, "worker"), end)
    lease = await asyncio.wait_for(waiting["c"].lease(), 60)
    assert lease is not None
    assert (lease.task_id, asked) == ("po-2", ["w-c"])
    await waiting["b"].cancel()
