"""Workers that are there: however long one waits it is not offline, and a token brings a bounded number of names."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import TaskStatus
from gateway.orders.lease import open_lease
from gateway.orders.read import workers_seen
from gateway.sweeps.presence import PresenceSweep
from tests.gateway.operations.person import Person, bring
from tests.gateway.support.book import POLICY, Book, refused
from tests.gateway.support.core import Core, running_core
from tests.gateway.support.grpc_api import RefusedCallError
from tests.gateway.support.in_process import RunningGateway
from tests.gateway.support.rest_api import envelope_of, rest_client
from tests.gateway.support.rest_api import lease as rest_lease

WAITING = ("w0", "w1", "w2")
SILENCE = timedelta(seconds=20)


async def offline(core: Core) -> dict[str, bool]:
    policy = replace(POLICY, worker_offline_after=SILENCE)
    return {seen.worker_id: seen.offline for seen in await core.store.read(workers_seen, policy)}


async def test_an_open_stream_is_a_sign_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.sweeps.presence._BATCH", 2)  # three need a second transaction
    async with running_core(tmp_path / "gateway.db") as core:
        sweep = PresenceSweep(core.store, lambda: {request.worker_id for request in core.dispatcher.waiting()}, "here")
        await core.lease(core.request("gone"))
        waiting = [asyncio.create_task(core.lease(core.request(f"w{number}"), 30)) for number in range(3)]
        async with asyncio.timeout(60):
            while len(core.dispatcher.waiting()) < 3:  # noqa: ASYNC110 - the desk gives no signal
                await asyncio.sleep(0)
        for _ in range(4):
            core.time.advance(15)
            await sweep.run_once()
        assert await offline(core) == {"gone": True, "w0": False, "w1": False, "w2": False}
        seen = await core.store.read(workers_seen, POLICY)
        assert {worker.worker_id: worker.gateway for worker in seen} == {"gone": "", **dict.fromkeys(WAITING, "here")}

        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert core.dispatcher.waiting() == []
        core.time.advance(15)
        await sweep.run_once()
        assert set((await offline(core)).values()) == {True, False}
        core.time.advance(15)
        await sweep.run_once()
        assert set((await offline(core)).values()) == {True}


@pytest.fixture
def person(book: Book) -> Person:
    return Person(book)


@pytest.fixture
def two_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.orders.presence.MAX_NAMES", 2)


@pytest.mark.usefixtures("two_names")
def test_a_token_brings_a_bounded_number_of_names(book: Book, person: Person) -> None:
    def ask(worker: str, identity: str = "worker") -> Reason | None:
        opened = book.run(open_lease, book.policy, book.request(worker, identity=identity), book.new_token())
        return opened.reason if isinstance(opened, Refusal) else None

    bring(book, TaskStatus.STALE)  # by w1
    assert [ask("w2"), ask("w3"), ask("w1"), ask("w2")] == [None, Reason.TOO_MANY, None, None]
    refusal = refused(book.reclaim(request=book.request("w3")))
    assert refusal.reason is Reason.TOO_MANY
    assert "worker has brought 2 names" in refusal.message
    assert "order-gateway workers forget" in refusal.message
    assert ask("w3", "another") is None, "each token has its own"
    assert ask("w2", "another") is None
    assert ask("w4", "another") is None, "a name counts for the token that brought it"
    assert ask("w5", "another") is Reason.TOO_MANY
    person.forget("w2")
    assert [ask("w6"), ask("w2")] == [None, Reason.TOO_MANY]


@pytest.mark.usefixtures("two_names")
async def test_one_name_too_many_is_told_over_each_transport(gateway: RunningGateway) -> None:
    async with rest_client(gateway.http_port) as client:
        await rest_lease(client, "w1")
        await rest_lease(client, "w2")
        answer = await client.get("/api/orders/lease", params={"worker_id": "w3", "wait": 30})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "60")
        assert "workers forget" in envelope_of(answer)["msg"]
        await rest_lease(client, "w1")
        health = (await client.get("/health")).json()["data"]
    with pytest.raises(RefusedCallError) as caught:
        await gateway.api.lease("w3")
    assert (caught.value.status, caught.value.reason) == ("RESOURCE_EXHAUSTED", Reason.TOO_MANY)
    assert [worker["worker_id"] for worker in health["workers"]] == ["w1", "w2"]
