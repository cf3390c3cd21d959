"""Callbacks between the contract's messages and the domain's values."""

from typing import Final

from ordergateway.v1 import operations_pb2

from gateway.api.codec.times import timestamp
from gateway.domain.callbacks import Callback, CallbackStatus
from gateway.domain.refusals import invalid

_STATUS: Final = {
    status: operations_pb2.CallbackStatus.Value(f"CALLBACK_STATUS_{status.name}") for status in CallbackStatus
}
_STATUS_BACK: Final = {number: status for status, number in _STATUS.items()}


def callback_status(number: int) -> CallbackStatus | None:
    """Check a status; UNSPECIFIED is None. Raises RefusedError INVALID_FIELD."""
    if number == 0:
        return None
    status = _STATUS_BACK.get(operations_pb2.CallbackStatus.ValueType(number))
    if status is None:
        raise invalid("status", f"is {number}, which is no status of a callback")
    return status


def callback_message(callback: Callback) -> operations_pb2.Callback:
    """Write a callback."""
    return operations_pb2.Callback(
        callback_id=callback.callback_id,
        task_id=callback.task_id or "",
        url=callback.url,
        type=callback.type,
        status=_STATUS[callback.status],
        attempts=callback.attempts,
        created_at=timestamp(callback.created_at),
        next_attempt_at=timestamp(callback.next_attempt_at),
        last_result=callback.last_result,
    )
