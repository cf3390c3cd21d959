"""gRPC calls whose request does not come: who has no token is refused without it, the others within limits."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from gateway.api.grpc import handlers as guard
from gateway.api.grpc import incoming
from gateway.domain.refusals import Reason
from tests.gateway.support.grpc_api import RefusedCallError, connected, told
from tests.gateway.support.in_process import RunningGateway, running_gateway

SUBMIT = "/ordergateway.v1.OrderService/SubmitOrder"
WATCH = "/ordergateway.v1.OrderService/WatchOrder"
CHECK = "/grpc.health.v1.Health/Check"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
TOKEN = "a-token-of-sixteen-or-more"
KNOWN = (("authorization", f"Bearer {TOKEN}"),)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, upstream_token=TOKEN, operator_token="another-token-of-sixteen") as running:
        yield running


def opened(channel: grpc.aio.Channel, path: str, metadata: Any = KNOWN) -> Any:
    """A call with its headers alone."""
    return channel.stream_stream(path)(metadata=metadata)


async def refusal(call: Any) -> RefusedCallError:
    with pytest.raises(RefusedCallError) as refused:
        await told(asyncio.wait_for(call.read(), 60))
    return refused.value


@pytest.mark.parametrize("path", [SUBMIT, WATCH, REFLECTION])
async def test_a_stranger_is_refused_before_the_request_has_come(served: RunningGateway, path: str) -> None:
    async with connected(served.port) as api:
        assert (await refusal(opened(api.channel, path, ()))).reason is Reason.UNAUTHENTICATED


@pytest.mark.parametrize("path", [SUBMIT, WATCH, REFLECTION, CHECK])
async def test_a_request_that_does_not_come_ends_the_call(
    served: RunningGateway, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr(incoming, "REQUEST_SECONDS", 0.2)
    async with connected(served.port) as api:
        refused = await refusal(opened(api.channel, path))
        assert (refused.status, refused.fields) == (
            "INVALID_ARGUMENT",
            {"request": "it did not come within 0.2 seconds"},
        )


@pytest.mark.parametrize("path", [SUBMIT, WATCH, CHECK])
async def test_a_call_that_ends_without_a_request_is_told_so(served: RunningGateway, path: str) -> None:
    async with connected(served.port) as api:
        call = opened(api.channel, path)
        await call.done_writing()
        assert (await refusal(call)).fields == {"request": "the call ended without one"}


async def test_unsent_requests_of_one_token_are_bounded_and_no_other_token_s(
    served: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MAX_UNREAD", 3)
    async with connected(served.port, TOKEN) as api:
        calls = [opened(api.channel, SUBMIT) for _ in range(4)]
        reading = {asyncio.ensure_future(refusal(call)) for call in calls}
        done, _ = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
        (refused,) = [task.result() for task in done]
        assert (refused.status, refused.reason) == ("RESOURCE_EXHAUSTED", Reason.TOO_MANY)
        assert "3 calls are sending their requests" in str(refused)
        async with connected(served.port, "another-token-of-sixteen") as other:
            await other.health()
        for task in reading - done:
            task.cancel()
        for call in calls:
            call.cancel()
