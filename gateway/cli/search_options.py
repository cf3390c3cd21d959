"""Options by which several commands select tasks."""

import functools
import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, get_type_hints

import typer
from ordergateway.v1 import orders_pb2

from gateway.cli.options import AccountOption, SiteOption, choice
from gateway.cli.output import number_of


def _time(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no time such as 2026-07-30 or 2026-07-30T14:59:00+09:00.") from None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _label(text: str) -> str:
    if "=" not in text:
        raise typer.BadParameter(f"{text!r} is no label such as team=purchasing.")
    return text


def _when(flag: str, meaning: str) -> Any:
    return typer.Option(flag, parser=_time, metavar="TIME", help=f"{meaning} UTC unless it has an offset.")


def _selection(  # noqa: PLR0913, PLR0917 - an option each
    status: Annotated[
        list[str] | None, choice("--status", orders_pb2.TaskStatus, "Only in this status; may be repeated.")
    ] = None,
    site: SiteOption = "",
    account: AccountOption = "",
    label: Annotated[
        list[str] | None,
        typer.Option("--label", parser=_label, metavar="KEY=VALUE", help="Only with this label; may be repeated."),
    ] = None,
    order_number: Annotated[str, typer.Option("--order-number", help="Only with this order number of the site.")] = "",
    created_from: Annotated[datetime | None, _when("--created-from", "Filed at this time or later.")] = None,
    created_to: Annotated[datetime | None, _when("--created-to", "Filed before this time.")] = None,
    updated_from: Annotated[datetime | None, _when("--updated-from", "Last changed at this time or later.")] = None,
    updated_to: Annotated[datetime | None, _when("--updated-to", "Last changed before this time.")] = None,
    needs_decision: Annotated[
        bool, typer.Option("--needs-decision", help="Only those that wait for a person's decision.")
    ] = False,
    held_for_approval: Annotated[
        bool, typer.Option("--held-for-approval", help="Only those that wait in the queue for an approval.")
    ] = False,
    prefix: Annotated[str, typer.Option("--prefix", help="Only those whose task_id begins so.")] = "",
    text: Annotated[str, typer.Option("--text", help="Only those whose task_id contains this; slower.")] = "",
) -> orders_pb2.TaskFilter:
    """Make the filter of what was given."""
    wanted = orders_pb2.TaskFilter(
        statuses=[number_of(orders_pb2.TaskStatus, word) for word in status or ()],
        site=site,
        account=account,
        labels={key: value for key, _, value in (text.partition("=") for text in label or ())},
        site_order_id=order_number,
        needs_decision=needs_decision,
        held_for_approval=held_for_approval,
        task_id_prefix=prefix,
        task_id_contains=text,
    )
    times = {
        "created_from": created_from, "created_to": created_to, "updated_from": updated_from, "updated_to": updated_to
    }  # fmt: skip
    for name, at in times.items():
        if at is not None:
            getattr(wanted, name).FromDatetime(at)
    return wanted


def selects_tasks(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command whose first parameter is a TaskFilter take the options that make one."""
    options = inspect.signature(_selection).parameters
    (first, *own) = inspect.signature(command).parameters.values()

    @functools.wraps(command)
    def selecting(**given: Any) -> None:
        selected = _selection(**{name: given.pop(name) for name in options})
        command(selected, **given)

    required = [each for each in own if each.default is inspect.Parameter.empty]
    others = [each for each in own if each.default is not inspect.Parameter.empty]
    hints = get_type_hints(_selection, include_extras=True) | get_type_hints(command, include_extras=True)
    del hints[first.name]
    selecting.__signature__ = inspect.Signature([*required, *options.values(), *others])  # type: ignore[attr-defined]
    selecting.__annotations__ = hints | {"return": None}
    return selecting
