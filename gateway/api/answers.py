"""What the services' methods have in common when they answer."""

import asyncio
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Final, TypeVar

from google.protobuf import timestamp_pb2
from ordergateway.v1 import orders_pb2

from gateway.domain.refusals import Refusal, RefusedError

T = TypeVar("T")
M = TypeVar("M")

_A_TURN: Final = 16


def accepted(outcome: T | Refusal) -> T:
    """Return a use case's result, or raise its refusal for the transport to tell."""
    if isinstance(outcome, Refusal):
        raise RefusedError(outcome)
    return outcome


async def converted(convert: Callable[[T], M], items: Iterable[T]) -> list[M]:
    """Return the items as messages; a page of them takes long enough that the event loop gets turns in between."""
    messages = []
    for number, item in enumerate(items, 1):
        messages.append(convert(item))
        if number % _A_TURN == 0:
            await asyncio.sleep(0)
    return messages


def heartbeat() -> orders_pb2.Heartbeat:
    """Make a sign of life that carries the time of sending."""
    sent_at = timestamp_pb2.Timestamp()
    sent_at.FromDatetime(datetime.now(UTC))
    return orders_pb2.Heartbeat(sent_at=sent_at)
