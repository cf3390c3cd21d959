"""What a person can do in the console: one table, each line a method of the contract with a form for its request.

There is no other way to change anything here, so the console can do nothing that gRPC and the command line cannot, and
whatever a method checks, refuses or writes into the history is the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message

from gateway.console.forms import Form
from gateway.domain.budgets import BudgetPeriod
from gateway.domain.fields import MAX_REASON_CHARACTERS, MAX_YEN
from gateway.domain.refusals import invalid
from gateway.domain.states import OrderState

_MAX_HOURS: Final = 24 * 365
_MAX_NUMBER_CHARACTERS: Final = 24


class Kind(StrEnum):
    """How a field is asked for."""

    SUBJECT = "subject"
    """What the action is about; the page knows it."""
    TEXT = "text"
    LONG_TEXT = "long_text"
    YEN = "yen"
    HOURS = "hours"
    FLAG = "flag"
    CHOICE = "choice"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a request; one within a message of it has both names, with a dot between.

    `choices`: names of an enumeration's values in lower case, without its prefix.
    """

    name: str
    kind: Kind
    required: bool = False
    choices: tuple[str, ...] = ()
    limit: int = MAX_REASON_CHARACTERS


@dataclass(frozen=True, slots=True)
class Action:
    """Something that a person does: `method` of the contract, with what the form asks for and what is always said."""

    name: str
    method: str
    fields: tuple[Field, ...]
    preset: tuple[tuple[str, Any], ...] = ()
    is_grave: bool = False
    """Whether it ends something, or lets something irreversible happen."""


def _of(subject: str, *fields: Field) -> tuple[Field, ...]:
    return (Field(subject, Kind.SUBJECT, required=True), *fields)


_REASON: Final = Field("reason", Kind.LONG_TEXT, required=True)
_STATE: Final = Field("state", Kind.CHOICE, choices=tuple(state.value for state in OrderState))
_NUMBER: Final = Field("site_order_id", Kind.TEXT, limit=128)
_SITE: Final = Field("site", Kind.SUBJECT)

_OPERATIONS: Final = "/ordergateway.v1.OperationsService/"
_ORDERS: Final = "/ordergateway.v1.OrderService/"
_CATALOG: Final = "/ordergateway.v1.CatalogService/"

_INTEGERS: Final = (FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_INT32)

_TABLE: Final = (
    Action(
        "approve",
        _OPERATIONS + "ApproveOrder",
        _of("task_id", Field("max_total_yen", Kind.YEN), Field("valid_for", Kind.HOURS), _REASON),
        is_grave=True,
    ),
    Action("deny", _OPERATIONS + "DenyOrder", _of("task_id", _REASON), is_grave=True),
    Action(
        "resolve_succeeded",
        _OPERATIONS + "ResolveOrder",
        _of("task_id", _NUMBER, _STATE, Field("although_impossible", Kind.FLAG), _REASON),
        preset=(("outcome", "succeeded"),),
        is_grave=True,
    ),
    Action(
        "resolve_failed",
        _OPERATIONS + "ResolveOrder",
        _of("task_id", _STATE, _REASON),
        preset=(("outcome", "failed"),),
        is_grave=True,
    ),
    Action(
        "confirm_proposal",
        _OPERATIONS + "ConfirmProposal",
        (Field("proposal_id", Kind.SUBJECT, required=True), _REASON),
        is_grave=True,
    ),
    Action(
        "withdraw_proposal",
        _OPERATIONS + "WithdrawProposal",
        (Field("proposal_id", Kind.SUBJECT, required=True), _REASON),
    ),
    Action("requeue", _OPERATIONS + "RequeueOrder", _of("task_id", _REASON), is_grave=True),
    Action("withdraw", _OPERATIONS + "WithdrawOrder", _of("task_id", _REASON)),
    Action("expire", _OPERATIONS + "ExpireOrder", _of("task_id", _REASON), is_grave=True),
    Action("cancel", _ORDERS + "CancelOrder", _of("task_id", _REASON), is_grave=True),
    Action(
        "request_cancel",
        _ORDERS + "CancelOrder",
        _of("task_id", _REASON),
        preset=(("while_leased", True),),
        is_grave=True,
    ),
    Action("clear_alert", _OPERATIONS + "ClearAlert", (Field("alert_id", Kind.SUBJECT, required=True), _REASON)),
    Action("replay_callback", _OPERATIONS + "ReplayCallback", _of("callback_id")),
    Action(
        "send_test_callback", _OPERATIONS + "SendTestCallback", (Field("url", Kind.TEXT, required=True, limit=2_000),)
    ),
    Action("pause", _OPERATIONS + "PauseDispatch", (_SITE, _REASON), is_grave=True),
    Action("resume", _OPERATIONS + "ResumeDispatch", (_SITE, _REASON), is_grave=True),
    Action("forget_worker", _OPERATIONS + "ForgetWorker", _of("worker_id", _REASON)),
    Action(
        "set_budget",
        _OPERATIONS + "SetBudget",
        (
            Field("budget_id", Kind.TEXT, required=True, limit=64),
            Field("period", Kind.CHOICE, required=True, choices=tuple(period.value for period in BudgetPeriod)),
            Field("limit_yen", Kind.YEN, required=True),
            Field("scope.site", Kind.TEXT, limit=64),
            Field("scope.account", Kind.TEXT, limit=64),
            Field("scope.identity", Kind.TEXT, limit=64),
            _REASON,
        ),
    ),
    Action("delete_budget", _OPERATIONS + "DeleteBudget", _of("budget_id", _REASON), is_grave=True),
    Action("send_test_notification", _OPERATIONS + "SendTestNotification", ()),
    Action("create_backup", _OPERATIONS + "CreateBackup", ()),
    Action("discover", _CATALOG + "Discover", (_SITE, Field("account", Kind.SUBJECT))),
)

ACTIONS: Final[Mapping[str, Action]] = MappingProxyType({action.name: action for action in _TABLE})
"""All of them by name. A test compares their methods with the contract and with the commands."""


def fill_in(message: Message, action: Action, form: Form) -> None:
    """Write into a request what a form says. Raises RefusedError INVALID_FIELD with the field and the limit."""
    for name, value in action.preset:
        _put(message, name, value)
    for field in action.fields:
        text = form.one(field.name)
        if text:
            _put(message, field.name, _value(field, text))
        elif field.required:
            raise invalid(field.name, "is required")


def _value(field: Field, text: str) -> Any:
    match field.kind:
        case Kind.YEN | Kind.NUMBER:
            return _number(field.name, text)
        case Kind.HOURS:
            return _hours(field.name, text)
        case Kind.FLAG:
            return True
        case Kind.CHOICE if text not in field.choices:
            raise invalid(field.name, f"must be one of {', '.join(field.choices)}")
        case _ if len(text) > field.limit:
            raise invalid(field.name, f"must be at most {field.limit:,} characters")
        case _:
            return text


def _number(name: str, text: str) -> int:
    digits = text.removeprefix("¥").replace(",", "").removesuffix("円").strip()
    if not digits.isdecimal() or len(text) > _MAX_NUMBER_CHARACTERS or int(digits) > MAX_YEN:
        raise invalid(name, f"must be a whole number, at most {MAX_YEN:,}")
    return int(digits)


def _hours(name: str, text: str) -> Duration:
    try:
        hours = float(text)
    except ValueError:
        hours = 0.0
    if not 0 < hours <= _MAX_HOURS:
        raise invalid(name, f"must be a number of hours above 0 and at most {_MAX_HOURS:,}")
    duration = Duration()
    duration.FromSeconds(round(hours * 3600))
    return duration


def _put(message: Message, name: str, value: Any) -> None:
    *outer, name = name.split(".")
    for part in outer:
        message = getattr(message, part)
    described = message.DESCRIPTOR.fields_by_name[name]
    if isinstance(value, Message):
        getattr(message, name).CopyFrom(value)
    elif described.enum_type is not None:
        # A value's name ends with what the form says.
        ending = f"_{value.upper()}"
        [number] = [each.number for each in described.enum_type.values if each.name.endswith(ending)]
        setattr(message, name, number)
    elif described.cpp_type in _INTEGERS and isinstance(value, str):
        setattr(message, name, _number(name, value))
    else:
        setattr(message, name, value)
