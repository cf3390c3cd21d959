"""Both halves of the library against the real gateway."""

import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from ordergateway.client import (
    DeadlineExceededError,
    InvalidFieldError,
    NotFoundError,
    StatusConflictError,
    Tls,
    UnauthenticatedError,
    order,
)
from ordergateway.v1 import orders_pb2

from tests.clients.python.halves import KINDS, Half
from tests.gateway.api.test_auth import certificates
from tests.gateway.support.in_process import RunningGateway, running_gateway

__all__ = ["certificates"]

TOKEN = "a-token-of-an-upstream"
INTENT = {"amount": 12345678901234567890, "note": "煎茶"}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[RunningGateway]:
    async with running_gateway(tmp_path, token=TOKEN, api_token=TOKEN) as running:
        yield running


@pytest.fixture(params=KINDS)
async def half(served: RunningGateway, request: pytest.FixtureRequest) -> AsyncIterator[Half]:
    async with Half(request.param, f"grpc://127.0.0.1:{served.port}", TOKEN) as made:
        yield made


async def test_an_order_is_filed_once_with_every_digit_and_letter(half: Half) -> None:
    filed = await half.call("submit", "po-1", "rakuten", INTENT, labels={"team": "tea"}, max_total_yen=5_000)
    assert (filed.task_id, filed.created, filed.status) == ("po-1", True, orders_pb2.TASK_STATUS_QUEUED)
    again = await half.call("submit", "po-1", "rakuten", INTENT, max_total_yen=6_000)
    assert (again.created, again.intent_matches, set(again.differs)) == (False, True, {"labels", "max_total_yen"})
    task = await half.call("get", "po-1")
    assert task.intent_json == '{"amount": 12345678901234567890, "note": "煎茶"}'
    assert (dict(task.labels), task.max_total_yen) == ({"team": "tea"}, 5_000)


async def test_many_are_filed_and_listed_page_by_page(half: Half) -> None:
    orders = [order(f"po-{number:03}", "rakuten" if number != 7 else "nowhere", "{}") for number in range(520)]
    results = await half.all("submit_many", orders)
    assert [result.WhichOneof("outcome") for result in results].count("submitted") == 519
    assert (results[7].refusal.index, results[7].refusal.field) == (7, "orders[7].site")
    listed = [task.task_id for task in await half.all("list", page_size=200)]
    assert listed == [each.task_id for each in reversed(orders) if each.task_id != "po-007"]
    some = await half.all("list", orders_pb2.TaskFilter(task_id_prefix="po-51"))
    assert len(some) == 10


async def test_a_watch_tells_what_happens_until_the_end(half: Half) -> None:
    await half.call("submit", "po-1", "rakuten", INTENT)
    changes = half.client.watch("po-1")
    assert (await half.until(changes)).status == orders_pb2.TASK_STATUS_QUEUED
    cancelled = await half.call("cancel", "po-1", "no longer wanted")
    assert not cancelled.requested
    assert (await half.until(changes)).status == orders_pb2.TASK_STATUS_FAILED
    assert await half.until(changes) is None


async def test_refusals_are_exceptions_by_their_reason(half: Half, served: RunningGateway) -> None:
    with pytest.raises(NotFoundError, match="po-404"):
        await half.call("get", "po-404")
    with pytest.raises(InvalidFieldError) as invalid:
        await half.call("submit", "po 1", "nowhere", INTENT)
    assert "task_id" in invalid.value.violations
    await half.call("submit", "po-1", "rakuten", INTENT)
    assert await served.api.lease("w1") is not None
    with pytest.raises(StatusConflictError) as conflict:
        await half.call("cancel", "po-1", "no longer wanted")
    assert conflict.value.current_status == orders_pb2.TASK_STATUS_LEASED
    assert "renew" in conflict.value.allowed


@pytest.mark.parametrize("kind", KINDS)
async def test_a_wrong_token_is_told(served: RunningGateway, kind: str) -> None:
    async with Half(kind, f"grpc://127.0.0.1:{served.port}", "another-token") as half:
        with pytest.raises(UnauthenticatedError):
            await half.call("get", "po-1")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_gateway_that_says_nothing_is_waited_for_until_the_deadline(kind: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        async with Half(kind, f"grpc://127.0.0.1:{server.getsockname()[1]}", TOKEN) as half:
            begun = time.monotonic()
            with pytest.raises(DeadlineExceededError):
                await half.call("get", "po-1", timeout=0.5)
            assert 0.5 <= time.monotonic() - begun < 10


@pytest.mark.needs("openssl")
@pytest.mark.parametrize("kind", KINDS)
async def test_tls_with_an_own_authority(certificates: Path, kind: str) -> None:
    files = {"gateway_tls_cert": certificates / "server.pem", "gateway_tls_key": certificates / "server.key"}
    own, other = (Tls((certificates / f"{name}.pem").read_bytes()) for name in ("ca", "other"))
    async with running_gateway(certificates, api_token=TOKEN, **files) as running:
        url = f"grpcs://localhost:{running.port}"
        async with Half(kind, url, TOKEN, tls=own) as half:
            assert (await half.call("submit", "po-1", "rakuten", INTENT)).created
        async with Half(kind, url, TOKEN, tls=other) as half:
            with pytest.raises(DeadlineExceededError, match="UNAVAILABLE"):
                await half.call("get", "po-1", timeout=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("127.0.0.1:31110", "grpc://host:port"),
        ("grpc://gateway.example/orders", "nothing but scheme"),
        ("grpc://gateway.example", "plain text"),
    ],
)
async def test_an_address_that_is_none_is_refused(kind: str, url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Half(kind, url, TOKEN)
