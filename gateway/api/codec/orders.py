"""Orders and their reports between the contract's messages and the domain's values.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

from collections.abc import Callable, Sequence

from google.protobuf import timestamp_pb2
from ordergateway.v1 import orders_pb2

from gateway.api.codec.approvals import approval_message, reasons_to
from gateway.api.codec.terms import terms_message
from gateway.api.codec.times import datetime_of, timestamp
from gateway.domain import fields
from gateway.domain.instant import utc_text
from gateway.domain.intents import intent_key
from gateway.domain.labels import NO_LABELS, labels_of
from gateway.domain.models import Policy, Report, Submission, Submitted, TaskDetail
from gateway.domain.refusals import Refusal, invalid
from gateway.domain.states import OrderState, Placement, TaskStatus

_TASK_STATUS = {status: orders_pb2.TaskStatus.Value(f"TASK_STATUS_{status.name}") for status in TaskStatus}
_ORDER_STATE = {state: orders_pb2.OrderState.Value(f"ORDER_STATE_{state.name}") for state in OrderState}
_PLACEMENT = {placement: orders_pb2.Placement.Value(f"PLACEMENT_{placement.name}") for placement in Placement}
_TASK_STATUS_BACK = {number: status for status, number in _TASK_STATUS.items()}
_ORDER_STATE_BACK = {number: state for state, number in _ORDER_STATE.items()}


def task_status_to(status: TaskStatus | None) -> orders_pb2.TaskStatus.ValueType:
    """Write a task status; None is UNSPECIFIED."""
    return orders_pb2.TASK_STATUS_UNSPECIFIED if status is None else _TASK_STATUS[status]


def task_status(field: str, number: int) -> TaskStatus | None:
    """Check a task status; UNSPECIFIED is None."""
    if number == 0:
        return None
    found = _TASK_STATUS_BACK.get(orders_pb2.TaskStatus.ValueType(number))
    if found is None:
        raise invalid(field, f"is {number}, which is no status")
    return found


def order_state_to(state: OrderState | None) -> orders_pb2.OrderState.ValueType:
    """Write an order state; None is UNSPECIFIED."""
    return orders_pb2.ORDER_STATE_UNSPECIFIED if state is None else _ORDER_STATE[state]


def order_state(field: str, number: int) -> OrderState | None:
    """Check an order state; UNSPECIFIED is None."""
    if number == 0:
        return None
    found = _ORDER_STATE_BACK.get(orders_pb2.OrderState.ValueType(number))
    if found is None:
        raise invalid(field, f"is {number}, which is no order state")
    return found


def placement_to(placement: Placement) -> orders_pb2.Placement.ValueType:
    """Write whether an order may be there."""
    return _PLACEMENT[placement]


def submission(
    request: orders_pb2.SubmitOrderRequest, policy: Policy, new_task_id: Callable[[], str], traceparent: str
) -> Submission:
    """Check a request to file a task; `new_task_id` makes one where the upstream sent none."""
    not_before, not_after = fields.times(
        _moment("not_before", request.not_before) if request.HasField("not_before") else None,
        _moment("not_after", request.not_after) if request.HasField("not_after") else None,
    )
    task_id = fields.new_key("task_id", request.task_id) if request.task_id else new_task_id()
    site = fields.site("site", request.site, policy.sites)
    text = request.intent_json
    intent = fields.parsed_object("intent_json", text, max_bytes=policy.max_intent_bytes)
    account = fields.account("account", request.account)
    return Submission(
        task_id=task_id,
        site=site,
        intent_json=text,
        callback_url=fields.callback_url(
            "callback_url", request.callback_url if request.HasField("callback_url") else None
        ),
        traceparent=traceparent,
        account=account,
        labels_json=fields.labels("labels", request.labels) if request.labels else NO_LABELS,
        max_total_yen=fields.cap("max_total_yen", request.max_total_yen if request.HasField("max_total_yen") else None),
        not_before=not_before,
        not_after=not_after,
        stop_before_submit=request.stop_before_submit,
        intent_key=intent_key(site, account, intent, len(text)) if policy.same_intent_within else None,
        requires_approval=request.requires_approval,
    )


def _moment(field: str, message: timestamp_pb2.Timestamp) -> str:
    return utc_text(datetime_of(field, message))


def submitted_message(done: Submitted) -> orders_pb2.SubmitOrderResponse:
    """Write what a submission came to."""
    return orders_pb2.SubmitOrderResponse(
        task_id=done.task_id,
        status=task_status_to(done.status),
        created=done.created,
        intent_matches=done.intent_matches,
        differs=done.differs,
        same_intent_as=done.same_intent_as,
        held_for_approval=done.held_for_approval,
    )


def batch(request: orders_pb2.SubmitOrdersRequest) -> Sequence[orders_pb2.SubmitOrderRequest]:
    """Check how many orders a batch holds."""
    fields.batch_size("orders", len(request.orders))
    return request.orders


def batch_result(index: int, outcome: Submitted | Refusal) -> orders_pb2.SubmitOrdersResult:
    """Write what became of the order at this place of a batch."""
    if isinstance(outcome, Submitted):
        return orders_pb2.SubmitOrdersResult(submitted=submitted_message(outcome))
    (violation,) = outcome.violations
    return orders_pb2.SubmitOrdersResult(
        refusal=orders_pb2.SubmissionRefusal(
            index=index, field=f"orders[{index}].{violation.field}", description=violation.description
        )
    )


def task_message(detail: TaskDetail) -> orders_pb2.Task:
    """Write a task with its reports."""
    task = detail.task
    return orders_pb2.Task(
        task_id=task.task_id,
        site=task.site,
        intent_json=task.intent_json,
        callback_url=task.callback_url,
        status=task_status_to(task.status),
        lease_owner=task.lease_owner,
        lease_expires_at=timestamp(task.lease_expires_at),
        lease_count=task.lease_count,
        created_at=timestamp(task.created_at),
        updated_at=timestamp(task.updated_at),
        latest_state=order_state_to(task.latest_state),
        reports=[report_message(report) for report in detail.reports],
        submit_permitted_at=timestamp(task.submit_permitted_at),
        placement=_PLACEMENT[task.placement],
        account=task.account,
        labels=labels_of(task.labels_json),
        max_total_yen=task.max_total_yen,
        terms=terms_message(task.terms),
        not_before=timestamp(task.not_before),
        not_after=timestamp(task.not_after),
        stop_before_submit=task.stop_before_submit,
        cancel_requested_at=timestamp(task.cancel_requested_at),
        same_intent_as=task.same_intent_as,
        approval_reasons=reasons_to(task.approval_reasons),
        held_for_approval=task.is_held_for_approval,
        approval=approval_message(detail.approval),
        submitted_by=task.submitted_by or "",
    )


def report_message(report: Report) -> orders_pb2.Report:
    """Write one row of the mirror."""
    return orders_pb2.Report(
        state=order_state_to(report.state),
        payable_yen=report.payable_yen,
        pay_deadline=timestamp(report.pay_deadline),
        site_order_id=report.site_order_id,
        evidence_ref=report.evidence_ref,
        detail=report.detail,
        error_code=report.error_code,
        reported_at=timestamp(report.reported_at),
    )
