"""A gateway stands still in the middle of a transaction, beyond the length of its leases, and comes back."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from demo.programs import free_port
from gateway.domain.refusals import Reason
from tests.e2e.parts import TOKEN
from tests.faults.program import PATIENCE_SECONDS, Program, until
from tests.faults.promises import rows
from tests.faults.stage import LEASE_SECONDS, SETTINGS
from tests.gateway.support import postgres
from tests.gateway.support.grpc_api import GrpcApi, RefusedCallError, connected, heartbeat_of

pytestmark = [pytest.mark.needs("postgresql"), pytest.mark.timeout(240)]

OTHERS_WAIT_AT_MOST = 2.0
"""The server's limit for a transaction that stands still."""

SLACK = 4.0
SITE = "sandbox"


@dataclass
class Pair:
    """Two gateways: one that will stand still, and the other."""

    url: str
    program: Program
    frozen: GrpcApi
    other: GrpcApi

    async def who_waits(self) -> Any:
        """The stream of a worker that waits at the first one: what is filed from then on is leased to it at once.

        In the same group as the filing, once its wait is on disk; that comes after its first heartbeat.
        """
        stream = self.frozen.stream(wait=60)
        await heartbeat_of(stream)
        await until(lambda: rows(self.url, "SELECT 1 FROM streams") != [])
        return stream

    def row(self, sql: str) -> Any:
        (found,) = rows(self.url, sql)
        return found

    def lease_of(self, task_id: str) -> Any:
        return self.row(f"SELECT * FROM leases WHERE task_id = '{task_id}'")  # noqa: S608 - the test's own name


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    """Both run, and are reached."""
    async with AsyncExitStack() as stack:
        url = stack.enter_context(postgres.database())
        programs, apis = [], []
        for name in ("gateway", "gateway-2"):
            port = free_port()
            settings = SETTINGS | {"RAKUTEN_GATEWAY_DB_URL": url, "RAKUTEN_GATEWAY_GRPC_PORT": str(port)}
            programs.append(Program(name, tmp_path, settings))
            stack.push_async_callback(programs[-1].end)
            await programs[-1].start()
            apis.append(await stack.enter_async_context(connected(port, TOKEN)))
        await asyncio.wait_for(asyncio.gather(*(api.channel.channel_ready() for api in apis)), PATIENCE_SECONDS)
        yield Pair(url, programs[0], *apis)


LENGTHS = [pytest.param(LEASE_SECONDS * 1.2, id="short"), pytest.param(60.0, id="a minute", marks=pytest.mark.extended)]


@pytest.mark.parametrize("seconds", LENGTHS)
async def test_who_stands_still_with_the_lock_holds_up_nobody_for_long_and_says_nothing_wrong(
    pair: Pair, seconds: float
) -> None:
    former = await pair.who_waits()
    await pair.program.armed("before-commit:po-1", signal.SIGSTOP)
    submitting = asyncio.create_task(pair.frozen.submit("po-1", site=SITE))
    await pair.program.until_frozen()
    begun = time.monotonic()

    await asyncio.wait_for(pair.other.submit("po-2", site=SITE), 30)
    assert time.monotonic() - begun < OTHERS_WAIT_AT_MOST + SLACK
    with pytest.raises(RefusedCallError) as unknown:
        await pair.other.task("po-1")
    assert unknown.value.reason is Reason.TASK_NOT_FOUND, "what was not committed has not happened"
    lease = await asyncio.wait_for(pair.other.lease(wait=30), 30)
    assert lease is not None
    assert lease.task_id == "po-2"
    await pair.other.renew(lease)
    held_until = pair.row("SELECT lease_deadline_us FROM tasks WHERE task_id = 'po-2'")["lease_deadline_us"]

    await asyncio.sleep(seconds)
    pair.program.send(signal.SIGCONT)
    (told,) = await asyncio.wait_for(asyncio.gather(submitting, return_exceptions=True), 30)
    was_filed = not isinstance(told, BaseException)
    assert was_filed or (isinstance(told, RefusedCallError) and told.reason is Reason.STORE_UNAVAILABLE), told
    assert was_filed is bool(rows(pair.url, "SELECT 1 FROM tasks WHERE task_id = 'po-1'"))
    task = pair.row("SELECT * FROM tasks WHERE task_id = 'po-2'")
    assert task["lease_deadline_us"] in (None, held_until), "nobody has renewed it"
    with pytest.raises(RefusedCallError) as late:
        await pair.frozen.renew(lease)
    assert late.value.reason is Reason.LEASE_INVALID, "the time that it stood still counts for it too"

    # The process waits at the other gateway, so its former stream gets nothing.
    latest = asyncio.create_task(pair.other.lease(wait=30))
    await pair.frozen.submit("po-3", site=SITE)
    given = await asyncio.wait_for(latest, 30)
    assert given is not None
    assert given.task_id == ("po-1" if was_filed else "po-3")
    former.cancel()
    assert [row["lease_count"] for row in rows(pair.url, "SELECT lease_count FROM tasks WHERE lease_count > 1")] == []


async def test_who_stands_still_after_its_commit_brings_no_second_lease_and_takes_none_back(pair: Pair) -> None:
    former = await pair.who_waits()
    await pair.program.armed("after-commit:po-1", signal.SIGSTOP)
    submitting = asyncio.create_task(pair.frozen.submit("po-1", site=SITE))
    await pair.program.until_frozen()

    lease = await asyncio.wait_for(pair.other.lease(wait=30), 30)
    assert lease is not None
    await pair.other.renew(lease)
    former.cancel()
    pair.program.send(signal.SIGCONT)
    answer = await asyncio.wait_for(submitting, 30)
    assert answer.created
    await pair.frozen.renew(lease)
    kinds = [row["kind"] for row in rows(pair.url, "SELECT kind FROM events WHERE subject = 'po-1' ORDER BY sequence")]
    assert kinds == ["submit", "lease", "acknowledge", "renew"]


@pytest.mark.parametrize("seconds", LENGTHS)
async def test_a_permit_that_was_asked_for_before_a_freeze_is_not_longer_for_it(pair: Pair, seconds: float) -> None:
    await pair.other.submit("po-1", site=SITE)
    lease = await pair.other.lease(wait=30)
    assert lease is not None
    await pair.other.renew(lease)
    await pair.program.armed("before-commit:po-1", signal.SIGSTOP)
    asking = asyncio.create_task(pair.frozen.permit(lease, attests_no_click_record=True))
    await pair.program.until_frozen()
    await asyncio.sleep(seconds)
    pair.program.send(signal.SIGCONT)
    with pytest.raises(RefusedCallError) as refused:
        await asyncio.wait_for(asking, 30)
    assert refused.value.reason in (Reason.LEASE_INVALID, Reason.STORE_UNAVAILABLE)
    assert pair.lease_of("po-1")["permitted_at"] is None
