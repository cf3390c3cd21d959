"""A worker that waits is there, however long its wait and however short the silence that counts as offline."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.orders.read import workers_seen
from gateway.sweeps.presence import PresenceSweep
from tests.gateway.support.book import POLICY
from tests.gateway.support.core import Core, running_core

SILENCE = timedelta(seconds=20)


async def offline(core: Core) -> dict[str, bool]:
    policy = replace(POLICY, worker_offline_after=SILENCE)
    return {seen.worker_id: seen.offline for seen in await core.store.read(workers_seen, policy)}


async def test_an_open_stream_is_a_sign_of_life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gateway.sweeps.presence._BATCH", 2)  # three need a second transaction
    async with running_core(tmp_path / "gateway.db") as core:
        sweep = PresenceSweep(core.store, lambda: {request.worker_id for request in core.dispatcher.waiting()})
        await core.lease(core.request("gone"))
        waiting = [asyncio.create_task(core.lease(core.request(f"w{number}"), 30)) for number in range(3)]
        async with asyncio.timeout(10):
            while len(core.dispatcher.waiting()) < 3:  # noqa: ASYNC110 - the desk gives no signal
                await asyncio.sleep(0)
        for _ in range(4):
            core.time.advance(15)
            await sweep.run_once()
        assert await offline(core) == {"gone": True, "w0": False, "w1": False, "w2": False}

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
