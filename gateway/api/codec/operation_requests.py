"""From the messages of operations.proto to checked requests. Raises RefusedError INVALID_FIELD like requests.py."""

import re
from typing import Final, Protocol

from ordergateway.v1 import operations_pb2

from gateway.api.codec import requests
from gateway.api.codec.operation_messages import alert_kind_from
from gateway.domain import fields
from gateway.domain.instant import utc_text
from gateway.domain.models import AlertKind
from gateway.domain.operations import HistoryFilter, Resolution
from gateway.domain.refusals import invalid
from gateway.domain.states import TaskStatus

MAX_KINDS: Final = 32
_KIND: Final = re.compile(r"[a-z][a-z_]{0,63}", re.ASCII)


class _Reasoned(Protocol):
    @property
    def reason(self) -> str: ...


def reason(request: _Reasoned) -> str:
    """Check why a person does something: 1 to 1,000 characters."""
    return fields.text("reason", request.reason, limit=fields.MAX_REASON_CHARACTERS, required=True)


def site_or_all(text: str, known: tuple[str, ...]) -> str:
    """Check a site; empty stands for all."""
    return fields.site("site", text, known) if text else ""


def resolution(request: operations_pb2.ResolveOrderRequest) -> Resolution:
    """Check what a person states about an order."""
    outcome = requests.task_status("outcome", request.outcome)
    if outcome not in (TaskStatus.SUCCEEDED, TaskStatus.FAILED):
        raise invalid("outcome", "is required: succeeded or failed")
    return Resolution(
        task_id=fields.key("task_id", request.task_id),
        reason=reason(request),
        outcome=outcome,
        state=requests.order_state("state", request.state),
        site_order_id=fields.site_order_id(
            "site_order_id", request.site_order_id if request.HasField("site_order_id") else None
        ),
        although_impossible=request.although_impossible,
    )


def alert_kind(number: int) -> AlertKind | None:
    """Check a kind of alert; UNSPECIFIED is None."""
    try:
        return alert_kind_from(number)
    except KeyError:
        raise invalid("kind", f"is {number}, which is no kind of alert") from None


def history_filter(request: operations_pb2.ListEventsRequest) -> HistoryFilter:
    """Check which events are wanted."""
    if len(request.kinds) > MAX_KINDS:
        raise invalid("kinds", f"must name at most {MAX_KINDS} kinds")
    for kind in request.kinds:
        if not _KIND.fullmatch(kind):
            raise invalid("kinds", "must be words of a-z and _, such as report_refused")
    return HistoryFilter(
        subject=fields.text("subject", request.subject, limit=fields.MAX_REASON_CHARACTERS) or None,
        kinds=tuple(sorted(set(request.kinds))),
        since=utc_text(requests.datetime_of("since", request.since)) if request.HasField("since") else None,
        until=utc_text(requests.datetime_of("until", request.until)) if request.HasField("until") else None,
    )
