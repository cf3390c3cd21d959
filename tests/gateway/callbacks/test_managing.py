"""Callbacks over the API, and through the death of the process."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest
from ordergateway.v1 import operations_pb2

from gateway.settings import Settings
from gateway.sweeps.callback_sender import TOTAL_SECONDS
from tests.gateway.callbacks.conftest import SECRET
from tests.gateway.callbacks.receiver import Receiver, receiving, until
from tests.gateway.support.grpc_api import GrpcApi, connected
from tests.gateway.support.in_process import RunningGateway, make_settings
from tests.gateway.support.process import gateway_process


async def listed(api: GrpcApi, **fields: object) -> list[operations_pb2.Callback]:
    answer = await api.operations.ListCallbacks(operations_pb2.ListCallbacksRequest(**fields))  # type: ignore[arg-type]
    return list(answer.callbacks)


def delivered(api: GrpcApi, count: int) -> Callable[[], Awaitable[bool]]:
    """Whether the gateway has noted that so many callbacks were taken."""

    async def are() -> bool:
        return len(await listed(api, status=operations_pb2.CALLBACK_STATUS_DELIVERED)) == count

    return are


async def test_list_replay_and_test(gateway: RunningGateway, api: GrpcApi, receiver: Receiver) -> None:
    for number in range(3):
        await api.submit(f"po-{number}", callback_url=receiver.url)
        await api.cancel(f"po-{number}")
    await receiver.comes(3)
    sent = await api.operations.SendTestCallback(operations_pb2.SendTestCallbackRequest(url=receiver.url))
    assert sent.callback.type == "order.test"
    assert sent.callback.status == operations_pb2.CALLBACK_STATUS_PENDING
    await receiver.comes(4)
    assert receiver.received[3].json["type"] == "order.test"
    assert receiver.received[3].id == sent.callback.callback_id

    callbacks = await listed(api)
    assert [callback.task_id for callback in callbacks] == ["", "po-2", "po-1", "po-0"], "newest first"
    assert [callback.task_id for callback in await listed(api, task_id="po-1")] == ["po-1"]
    await until(delivered(api, 4))
    assert await listed(api, status=operations_pb2.CALLBACK_STATUS_PENDING) == []
    page = await api.operations.ListCallbacks(operations_pb2.ListCallbacksRequest(page_size=3))
    rest = operations_pb2.ListCallbacksRequest(page_size=3, page_token=page.next_page_token)
    assert [each.task_id for each in (await api.operations.ListCallbacks(rest)).callbacks] == ["po-0"]

    request = operations_pb2.ReplayCallbackRequest(callback_id=callbacks[1].callback_id)
    again = (await api.operations.ReplayCallback(request)).callback
    assert again.status == operations_pb2.CALLBACK_STATUS_PENDING
    await receiver.comes(5)
    assert receiver.received[4].id == callbacks[1].callback_id
    assert receiver.received[4].body == next(r.body for r in receiver.received if r.id == callbacks[1].callback_id)
    kinds = gateway.rows("SELECT kind, actor FROM events WHERE kind LIKE '%_callback'")
    assert [row["kind"] for row in kinds] == ["test_callback", "replay_callback"]


@pytest.mark.parametrize(
    ("method", "request_", "code"),
    [
        ("ReplayCallback", operations_pb2.ReplayCallbackRequest(callback_id="cb_0"), grpc.StatusCode.NOT_FOUND),
        ("ReplayCallback", operations_pb2.ReplayCallbackRequest(), grpc.StatusCode.INVALID_ARGUMENT),
        ("SendTestCallback", operations_pb2.SendTestCallbackRequest(), grpc.StatusCode.INVALID_ARGUMENT),
        ("SendTestCallback", operations_pb2.SendTestCallbackRequest(url="ftp://x/"), grpc.StatusCode.INVALID_ARGUMENT),
        ("ListCallbacks", operations_pb2.ListCallbacksRequest(page_size=201), grpc.StatusCode.INVALID_ARGUMENT),
        ("ListCallbacks", operations_pb2.ListCallbacksRequest(task_id="/"), grpc.StatusCode.INVALID_ARGUMENT),
        (
            "ListCallbacks",
            operations_pb2.ListCallbacksRequest(status=9),  # type: ignore[arg-type]
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
    ],
)
async def test_refusals(api: GrpcApi, method: str, request_: object, code: grpc.StatusCode) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await getattr(api.operations, method)(request_)
    assert refused.value.code() is code


async def test_killed_between_the_commit_and_the_delivery_it_is_still_delivered(tmp_path: Path) -> None:
    async with receiving(Receiver(hangs=True)) as receiver:
        async with gateway_process(tmp_path, callback_secret=SECRET) as process, connected(process.port) as api:
            await api.submit(callback_url=receiver.url)
            await api.cancel()
            await receiver.comes(1)
            process.kill()
            await process.wait()
        receiver.hangs = False
        async with gateway_process(tmp_path, callback_secret=SECRET) as process, connected(process.port) as api:
            await receiver.comes(2)
            first, second = receiver.received
            assert first.id == second.id
            assert first.body == second.body
            await until(delivered(api, 1))
            assert await process.terminate() == 0
            assert "open-sesame" not in process.log
            assert SECRET not in process.log


async def test_a_stop_does_not_wait_for_a_receiver_that_hangs(tmp_path: Path) -> None:
    async with (
        receiving(Receiver(hangs=True)) as receiver,
        gateway_process(tmp_path) as process,
        connected(process.port) as api,
    ):
        await api.submit(callback_url=receiver.url)
        await api.cancel()
        await receiver.comes(1)
        begun = asyncio.get_running_loop().time()
        assert await process.terminate() == 0
        assert asyncio.get_running_loop().time() - begun < TOTAL_SECONDS
        assert "callbacks are not signed" in process.log


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("callback_secret", "hunter2", "24 to 64 bytes"),
        ("callback_allowed_hosts", "https://upstream/", "without scheme"),
        ("callback_allowed_hosts", "upstream:80", "without scheme"),
    ],
)
def test_settings_that_make_no_sense(tmp_path: Path, setting: str, value: str, says: str) -> None:
    with pytest.raises(ValueError, match=says) as refused:
        make_settings(tmp_path, **{setting: value})
    assert "hunter2" not in str(refused.value)


def test_hosts_are_compared_in_one_form(tmp_path: Path) -> None:
    settings: Settings = make_settings(tmp_path, callback_allowed_hosts="Upstream.Example., [::1],10.0.0.1")
    assert settings.callback_allowed_hosts == ("upstream.example", "::1", "10.0.0.1")
