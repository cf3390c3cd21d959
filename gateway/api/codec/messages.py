"""From the domain's values to the contract's messages."""

from datetime import timedelta

from google.protobuf import duration_pb2, timestamp_pb2
from ordergateway.v1 import operations_pb2, order_leases_pb2, orders_pb2

from gateway.domain.instant import parse_utc
from gateway.domain.models import (
    Health,
    Lease,
    OtherOrders,
    Pause,
    Permit,
    Policy,
    QueuedTask,
    Renewed,
    Report,
    TaskDetail,
    WorkerSeen,
)
from gateway.domain.states import OrderState, Placement, TaskStatus

_TASK_STATUS = {status: orders_pb2.TaskStatus.Value(f"TASK_STATUS_{status.name}") for status in TaskStatus}
_ORDER_STATE = {state: orders_pb2.OrderState.Value(f"ORDER_STATE_{state.name}") for state in OrderState}
_PLACEMENT = {placement: orders_pb2.Placement.Value(f"PLACEMENT_{placement.name}") for placement in Placement}
_TASK_STATUS_BACK = {number: status for status, number in _TASK_STATUS.items()}
_ORDER_STATE_BACK = {number: state for state, number in _ORDER_STATE.items()}


def task_status_to(status: TaskStatus | None) -> orders_pb2.TaskStatus.ValueType:
    """Write a task status; None is UNSPECIFIED."""
    return orders_pb2.TASK_STATUS_UNSPECIFIED if status is None else _TASK_STATUS[status]


def task_status_from(number: int) -> TaskStatus | None:
    """Read a task status; UNSPECIFIED is None. Raises KeyError for a number that the contract does not know."""
    return None if number == 0 else _TASK_STATUS_BACK[orders_pb2.TaskStatus.ValueType(number)]


def order_state_to(state: OrderState | None) -> orders_pb2.OrderState.ValueType:
    """Write an order state; None is UNSPECIFIED."""
    return orders_pb2.ORDER_STATE_UNSPECIFIED if state is None else _ORDER_STATE[state]


def order_state_from(number: int) -> OrderState | None:
    """Read an order state; UNSPECIFIED is None. Raises KeyError for a number that the contract does not know."""
    return None if number == 0 else _ORDER_STATE_BACK[orders_pb2.OrderState.ValueType(number)]


def timestamp(utc: str | None) -> timestamp_pb2.Timestamp | None:
    """Write a stored time; None stays absent."""
    if utc is None:
        return None
    message = timestamp_pb2.Timestamp()
    message.FromDatetime(parse_utc(utc))
    return message


def duration(value: timedelta) -> duration_pb2.Duration:
    """Write a duration."""
    message = duration_pb2.Duration()
    message.FromTimedelta(value)
    return message


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
    )


def lease_message(lease: Lease, policy: Policy) -> order_leases_pb2.Lease:
    """Write a lease, its token included."""
    return order_leases_pb2.Lease(
        task_id=lease.task_id,
        site=lease.site,
        intent_json=lease.intent_json,
        lease_expires_at=timestamp(lease.lease_expires_at),
        lease_count=lease.lease_count,
        known_state=order_state_to(lease.known_state),
        lease_token=lease.token,
        task_created_at=timestamp(lease.task_created_at),
        other_site_order_ids=lease.others.site_order_ids,
        other_site_order_ids_truncated=lease.others.incomplete,
        lease_ttl=duration(policy.lease_ttl),
        acknowledge_within=duration(policy.acknowledge_within),
        traceparent=lease.traceparent,
    )


def renewed_message(renewed: Renewed, policy: Policy) -> order_leases_pb2.RenewLeaseResponse:
    """Write the answer to a renewal."""
    return order_leases_pb2.RenewLeaseResponse(
        task_id=renewed.task_id,
        lease_expires_at=timestamp(renewed.lease_expires_at),
        lease_count=renewed.lease_count,
        lease_ttl=duration(policy.lease_ttl),
        lease_age=duration(renewed.lease_age),
        other_orders=None if renewed.others is None else _other_orders(renewed.others),
    )


def _other_orders(others: OtherOrders) -> order_leases_pb2.OtherOrders:
    return order_leases_pb2.OtherOrders(site_order_ids=others.site_order_ids, incomplete=others.incomplete)


def permit_message(permit: Permit) -> order_leases_pb2.RequestSubmitPermitResponse:
    """Write a permit."""
    return order_leases_pb2.RequestSubmitPermitResponse(
        task_id=permit.task_id,
        permitted_at=timestamp(permit.permitted_at),
        valid_for=duration(permit.valid_for),
    )


def health_message(health: Health) -> operations_pb2.GetHealthResponse:
    """Write the health of the gateway."""
    return operations_pb2.GetHealthResponse(
        status=operations_pb2.HEALTH_STATUS_DEGRADED if health.degraded else operations_pb2.HEALTH_STATUS_OK,
        queued_count=health.queued_count,
        queued_query_count=health.queued_query_count,
        active_tasks=[task_message(detail) for detail in health.active_tasks],
        workers=[worker_message(worker) for worker in health.workers],
        offline_workers=[worker.worker_id for worker in health.workers if worker.offline],
        stale_queued_tasks=[_queued(task) for task in health.stale_queued_tasks],
        pauses=[pause_message(pause) for pause in health.pauses],
        problems=[
            operations_pb2.HealthProblem(
                kind=operations_pb2.HealthProblemKind.Value(f"HEALTH_PROBLEM_KIND_{problem.kind.name}"),
                message=problem.message,
            )
            for problem in health.problems
        ],
    )


def worker_message(worker: WorkerSeen) -> operations_pb2.Worker:
    """Write a worker."""
    return operations_pb2.Worker(
        worker_id=worker.worker_id,
        last_seen_at=timestamp(worker.last_seen_at),
        last_seen_ago=duration(worker.silent_for),
        offline=worker.offline,
    )


def _queued(task: QueuedTask) -> operations_pb2.QueuedTask:
    return operations_pb2.QueuedTask(
        task_id=task.task_id, site=task.site, created_at=timestamp(task.created_at), age=duration(task.age)
    )


def pause_message(pause: Pause) -> operations_pb2.Pause:
    """Write a pause of dispatch."""
    return operations_pb2.Pause(
        site=pause.site or "", paused_at=timestamp(pause.paused_at), paused_by=pause.paused_by, reason=pause.reason
    )
