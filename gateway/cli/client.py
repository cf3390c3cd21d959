"""The way to a running gateway: channel, token, stubs, and refusals as exit codes with one clear line."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final, TypeVar, cast

import grpc
import typer
from google.protobuf.message import Message
from ordergateway import client as upstream
from ordergateway.client import GatewayError, RefusedError, UnansweredError
from ordergateway.client.attempts import error_of
from ordergateway.client.channels import OPTIONS
from ordergateway.client.details import Failure
from ordergateway.v1 import errors_pb2, orders_pb2
from ordergateway.v1.account_queries_pb2_grpc import AccountQueryServiceStub
from ordergateway.v1.catalog_pb2_grpc import CatalogServiceStub
from ordergateway.v1.operations_pb2_grpc import OperationsServiceStub
from ordergateway.v1.orders_pb2_grpc import OrderServiceStub

from common.channel_credentials import channel_credentials
from common.exit_codes import CommandError, Exit
from common.gateway_target import GatewayTarget
from common.settings import SettingsError
from gateway.cli.advice import commands
from gateway.cli.diagnosis import why_unreachable
from gateway.cli.output import span
from gateway.cli.settings import CommandSettings, load_command_settings

T = TypeVar("T", bound=Message)

CALL_SECONDS: Final = 15.0
_PAGE: Final = 200

_CODES: Final = {
    grpc.StatusCode.INVALID_ARGUMENT: Exit.USAGE,
    grpc.StatusCode.NOT_FOUND: Exit.NOT_FOUND,
    grpc.StatusCode.FAILED_PRECONDITION: Exit.REFUSED,
    grpc.StatusCode.ABORTED: Exit.REFUSED,
    grpc.StatusCode.UNAUTHENTICATED: Exit.DENIED,
    grpc.StatusCode.PERMISSION_DENIED: Exit.DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED: Exit.UNREACHABLE,
    grpc.StatusCode.UNAVAILABLE: Exit.UNREACHABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED: Exit.UNREACHABLE,
}


_OPTIONS: Final = {
    "site_order_id": "--order-number",
    "although_impossible": "--although-impossible",
}
"""Fields of the contract that refusals name, and the options that fill them in."""


class Client:
    """The services of one gateway."""

    def __init__(self, channel: grpc.Channel, token: str | None, target: GatewayTarget) -> None:
        self._target = target
        self.orders = OrderServiceStub(channel)
        # Who waits at a terminal is told at once that there is no gateway.
        self._upstream = upstream.Client(channel, token, timeout=CALL_SECONDS, repeat=False)
        self.operations = OperationsServiceStub(channel)
        self.queries = AccountQueryServiceStub(channel)
        self.catalog = CatalogServiceStub(channel)
        self.task_id = "TASK"
        self.metadata = (("authorization", f"Bearer {token}"),) if token else ()

    def call(self, method: Callable[..., T], request: Message, seconds: float = CALL_SECONDS) -> T:
        """Call a unary method. Raises grpc.RpcError. The task that it names is the one a refusal is about."""
        self.task_id = getattr(request, "task_id", "") or "TASK"
        return method(request, timeout=seconds, metadata=self.metadata)

    def told(self, error: grpc.RpcError | GatewayError) -> CommandError:
        """Return how a call that failed is told at the terminal."""
        told = error if isinstance(error, GatewayError) else error_of(cast(Failure, error))
        return _told(told, self._target, self.task_id)

    def pages(self, method: Callable[..., Any], request: Any, items: str, limit: int) -> list[Any]:
        """Call a list method page by page and return up to `limit` messages of its field `items`."""
        found: list[Any] = []
        while True:
            request.page_size = min(200, limit - len(found))
            answer = self.call(method, request)
            page = getattr(answer, items)
            found += page
            # An empty page is the last one, whatever else it says: a page has at least one item.
            if not answer.next_page_token or not page or len(found) >= limit:
                return found
            request.page_token = answer.next_page_token

    def about(self, task_id: str) -> upstream.Client:
        """Return the client of upstreams, for calls about this task, which a refusal names. It raises GatewayError."""
        self.task_id = task_id
        return self._upstream

    def search(
        self, selected: orders_pb2.TaskFilter, *, oldest_first: bool, limit: int | None
    ) -> Iterator[orders_pb2.Task]:
        """Yield up to `limit` of the selected tasks, one page in memory."""
        ordered = orders_pb2.TaskFilter()
        ordered.CopyFrom(selected)
        if oldest_first:
            ordered.order = orders_pb2.TASK_ORDER_OLDEST_FIRST
        return islice(self._upstream.list(ordered, page_size=min(_PAGE, limit or _PAGE)), limit)


@contextmanager
def connected(url: str | None) -> Iterator[Client]:
    """Connect to the gateway that the option or the settings name. Raises CommandError for whatever goes wrong."""
    try:
        settings = load_command_settings()
        target = settings.target(url)
        channel = _channel(target, settings)
    except SettingsError as error:
        raise CommandError(str(error), Exit.USAGE) from None
    for line in settings.unusual():
        typer.echo(f"order-gateway: warning: {line}", err=True)
    with channel:
        client = Client(channel, settings.token, target)
        try:
            yield client
        except (grpc.RpcError, GatewayError) as error:
            raise client.told(error) from None


def _channel(target: GatewayTarget, settings: CommandSettings) -> grpc.Channel:
    if not target.tls:
        return grpc.insecure_channel(target.address, options=OPTIONS)
    return grpc.secure_channel(
        target.address,
        channel_credentials(settings.gateway_ca, settings.operator_tls_cert, settings.operator_tls_key, own="OPERATOR"),
        options=OPTIONS,
    )


def _told(error: GatewayError, target: GatewayTarget, task_id: str) -> CommandError:
    code = error.code
    detail = error.detail if isinstance(error, RefusedError) else None
    words = error.words if isinstance(error, UnansweredError) else ""
    if detail is None and code is grpc.StatusCode.UNAVAILABLE:
        return CommandError(why_unreachable(target, words), Exit.UNREACHABLE)
    if detail is None and code is grpc.StatusCode.DEADLINE_EXCEEDED:
        line = f"the gateway at {target.address} does not answer; is it running there, and is this its gRPC port?"
        return CommandError(line, Exit.UNREACHABLE)
    if code is grpc.StatusCode.UNIMPLEMENTED:
        return CommandError(f"the gateway at {target.address} does not offer this; it may be an older one", Exit.FAULT)
    line = words if detail is None else _in_options(detail)
    if code is grpc.StatusCode.UNAUTHENTICATED:
        line += "; set RAKUTEN_OPERATOR_TOKEN (or RAKUTEN_API_TOKEN)"
    if detail is not None and detail.reason == errors_pb2.ERROR_REASON_STATUS_CONFLICT:
        line = line.partition("; possible now: ")[0] + _what_you_can_do(detail, task_id)
    return CommandError(line, _exit(code, detail))


def _in_options(detail: errors_pb2.ErrorDetail) -> str:
    """What the gateway says, with options where it names fields of the contract, and times as elsewhere."""
    line = detail.message
    for field, option in _OPTIONS.items():
        line = re.sub(rf"(?<![\w.]){field}(?![\w.])", option, line)
    if detail.HasField("retry_after"):
        line = line.replace(f"{detail.retry_after.ToTimedelta().total_seconds():.0f} s", span(detail.retry_after))
    return line


def _what_you_can_do(detail: errors_pb2.ErrorDetail, task_id: str) -> str:
    possible = [line.partition("   ")[0] for line in commands(detail.allowed, task_id)]
    return "; what you can do: " + " or ".join(f"`{command}`" for command in possible) if possible else ""


def _exit(code: grpc.StatusCode, detail: errors_pb2.ErrorDetail | None) -> Exit:
    if detail is not None and [violation.field for violation in detail.violations] == ["alert_id"]:
        return Exit.NOT_FOUND
    return _CODES.get(code, Exit.FAULT)
