"""Times of a task, the same on every transport."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.contract.transports import TRANSPORTS, Clients, clients
from tests.gateway.support.in_process import RunningGateway

FROM = datetime(2026, 12, 1, 9, 0, tzinfo=UTC)
UNTIL = datetime(2026, 12, 1, 18, 30, 0, 250_000, tzinfo=UTC)


@pytest.fixture
async def connected(gateway: RunningGateway) -> AsyncIterator[Clients]:
    async with clients(gateway.port, gateway.http_port) as made:
        yield made


async def submit(connected: Clients, transport: str, **times: datetime | None) -> list[str]:
    """File a task and return in what it differs from the one that existed."""
    if transport == "rest":
        given = {name: moment and moment.isoformat() for name, moment in times.items()}
        body = {"task_id": "po-1", "site": "sandbox", "intent": {}, **given}
        return list((await connected.rest("POST", "/api/orders", body))["differs"])
    call = getattr(connected, transport)
    answer = await call("OrderService/SubmitOrder", task_id="po-1", site="sandbox", intent_json="{}", **times)
    return list(answer.differs)


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_task_has_its_times_for_ever(connected: Clients, transport: str) -> None:
    assert await submit(connected, transport, not_before=FROM, not_after=UNTIL) == []
    for other in TRANSPORTS:
        assert await submit(connected, other, not_before=FROM, not_after=UNTIL) == []
        assert await submit(connected, other) == ["not_before", "not_after"]
    shown = await connected.rest("GET", "/api/orders/po-1")
    assert shown["not_before"] == "2026-12-01T09:00:00.000000Z"
    assert shown["not_after"] == "2026-12-01T18:30:00.250000Z"
    for call in (connected.grpc, connected.connect):
        task = (await call("OrderService/GetOrder", task_id="po-1")).task
        assert task.not_before.ToDatetime(UTC) == FROM
        assert task.not_after.ToDatetime(UTC) == UNTIL


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_an_end_before_the_beginning_is_refused_and_nothing_is_stored(connected: Clients, transport: str) -> None:
    with pytest.raises(Exception, match="not_after"):
        await submit(connected, transport, not_before=UNTIL, not_after=FROM)
    assert (await connected.rest("GET", "/api/orders"))["items"] == []


@pytest.mark.parametrize("field", ["not_before", "not_after"])
@pytest.mark.parametrize("value", ["2026-12-01T09:00:00", "tomorrow", "2026-13-01T09:00:00Z", ""])
async def test_a_time_without_an_offset_or_none_at_all_is_refused(connected: Clients, field: str, value: str) -> None:
    body: dict[str, Any] = {"task_id": "po-1", "site": "sandbox", "intent": {}, field: value}
    with pytest.raises(Exception, match=field):
        await connected.rest("POST", "/api/orders", body)
