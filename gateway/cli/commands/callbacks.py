"""`order-gateway callbacks`: what is sent to upstreams."""

from enum import StrEnum
from typing import Annotated

import typer
from ordergateway.v1 import operations_pb2

from common.output import print_json, say
from common.tables import print_table
from gateway.cli.client import connected
from gateway.cli.exit_codes import EPILOG
from gateway.cli.options import GatewayOption, JsonOption, LimitOption
from gateway.cli.output import as_json, list_as_json, when, word

callbacks = typer.Typer(help="Look at callbacks, send one again, send a test.", no_args_is_help=True)


class CallbackStatus(StrEnum):
    """Where a callback stands."""

    PENDING = "pending"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(callbacks, name="callbacks", epilog=EPILOG)


@callbacks.command("list")
def list_callbacks(
    status: Annotated[CallbackStatus | None, typer.Option("--status", help="Only in this status.")] = None,
    task: Annotated[str, typer.Option("--task", help="Only of this task.")] = "",
    limit: LimitOption = 50,
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """List callbacks, the newest first."""
    request = operations_pb2.ListCallbacksRequest(task_id=task)
    if status is not None:
        request.status = operations_pb2.CallbackStatus.Value(f"CALLBACK_STATUS_{status.name}")
    with connected(gateway) as client:
        found = client.pages(client.operations.ListCallbacks, request, "callbacks", limit)
    if as_json_:
        list_as_json("callbacks", found)
        return
    print_table(
        ("callback", "task", "type", "status", "tries", "filed", "next try", "url", "last result"),
        (
            (
                callback.callback_id,
                callback.task_id,
                callback.type,
                word(operations_pb2.CallbackStatus, callback.status),
                str(callback.attempts),
                when(callback, "created_at"),
                when(callback, "next_attempt_at"),
                callback.url,
                callback.last_result,
            )
            for callback in found
        ),
        "no callbacks",
    )


@callbacks.command()
def replay(
    callback: Annotated[
        str, typer.Argument(metavar="CALLBACK", help="The callback's callback_id, as `callbacks list` shows it.")
    ],
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Send a callback again, with its old id."""
    request = operations_pb2.ReplayCallbackRequest(callback_id=callback)
    with connected(gateway) as client:
        _print_callback(client.call(client.operations.ReplayCallback, request).callback, as_json_)


@callbacks.command("test")
def send_test(
    url: Annotated[str, typer.Argument(metavar="URL", help="The receiver's absolute http or https URL.")],
    gateway: GatewayOption = None,
    as_json_: JsonOption = False,
) -> None:
    """Send a test callback (type order.test, no order) to an upstream's receiver.

    It is sent soon, like any other callback; how it was answered is shown by `order-gateway callbacks list`.
    """
    request = operations_pb2.SendTestCallbackRequest(url=url)
    with connected(gateway) as client:
        _print_callback(client.call(client.operations.SendTestCallback, request).callback, as_json_)


def _print_callback(callback: operations_pb2.Callback, as_json_: bool) -> None:
    if as_json_:
        print_json(as_json(callback))
    else:
        say(f"callback {callback.callback_id} to {callback.url} will be sent")
