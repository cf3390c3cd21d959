"""What the services' methods have in common when they answer."""

from datetime import UTC, datetime
from typing import TypeVar

from google.protobuf import timestamp_pb2
from ordergateway.v1 import orders_pb2

from gateway.domain.refusals import Refusal, RefusedError

T = TypeVar("T")


def accepted(outcome: T | Refusal) -> T:
    """Return a use case's result, or raise its refusal for the transport to tell."""
    if isinstance(outcome, Refusal):
        raise RefusedError(outcome)
    return outcome


def heartbeat() -> orders_pb2.Heartbeat:
    """Make a sign of life that carries the time of sending."""
    sent_at = timestamp_pb2.Timestamp()
    sent_at.FromDatetime(datetime.now(UTC))
    return orders_pb2.Heartbeat(sent_at=sent_at)
