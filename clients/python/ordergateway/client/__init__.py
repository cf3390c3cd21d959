"""A client of order-gateway for upstreams: submit, watch, get, list, cancel.

`Client` blocks, `AsyncClient` awaits; both do the same. A call whose answer was lost is repeated under the same
task_id, with a jittered backoff, until its deadline. A refusal is an exception, by its reason. The rules of repetition
stand in ordergateway/v1/errors.proto.
"""

from ordergateway.client.blocking import Client
from ordergateway.client.callbacks import Callback, CallbackError, verify_callback
from ordergateway.client.channels import Tls
from ordergateway.client.errors import (
    CancelTooLateError,
    DeadlineExceededError,
    GatewayError,
    InvalidFieldError,
    NotFoundError,
    PermissionDeniedError,
    RefusedError,
    StatusConflictError,
    TooLargeError,
    TooManyError,
    UnansweredError,
    UnauthenticatedError,
)
from ordergateway.client.nonblocking import AsyncClient
from ordergateway.client.orders import OrderFields, order

__all__ = [
    "AsyncClient",
    "Callback",
    "CallbackError",
    "CancelTooLateError",
    "Client",
    "DeadlineExceededError",
    "GatewayError",
    "InvalidFieldError",
    "NotFoundError",
    "OrderFields",
    "PermissionDeniedError",
    "RefusedError",
    "StatusConflictError",
    "Tls",
    "TooLargeError",
    "TooManyError",
    "UnansweredError",
    "UnauthenticatedError",
    "order",
    "verify_callback",
]
