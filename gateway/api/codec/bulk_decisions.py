"""One decision about many tasks, between the contract's messages and the domain's values.

What reads a request raises RefusedError INVALID_FIELD with the field's path and the limit.
"""

from collections.abc import Sequence

from ordergateway.v1 import errors_pb2, operations_pb2, orders_pb2

from gateway.api.codec.orders import placement_to, task_status_to
from gateway.api.codec.search import task_search
from gateway.api.codec.times import datetime_of, timestamp
from gateway.api.errors import detail_of
from gateway.domain import fields
from gateway.domain.instant import utc_text
from gateway.domain.models import Policy
from gateway.domain.refusals import Refusal, invalid
from gateway.domain.search import TaskSearch
from gateway.operations.bulk import BECOMES, DecidedTask, DecisionKind, DecisionOutcome, SeenTask

_KIND_BACK = {operations_pb2.DecisionKind.Value(f"DECISION_KIND_{kind.name}"): kind for kind in DecisionKind}


def decision_kind(number: int) -> DecisionKind:
    """Check which decision is meant."""
    found = _KIND_BACK.get(operations_pb2.DecisionKind.ValueType(number))
    if found is None:
        raise invalid("decision", "is required: requeue, cancel, resolve_failed or resolve_succeeded")
    return found


def some_tasks(told: orders_pb2.TaskFilter, policy: Policy) -> TaskSearch:
    """Check which tasks are meant; without any condition they would be all there ever were."""
    wanted = task_search(told, policy, "filter.")
    if wanted == TaskSearch(oldest_first=wanted.oldest_first):
        raise invalid("filter", "is required, with at least one condition")
    return wanted


def seen_tasks(seen: Sequence[operations_pb2.SeenTask]) -> list[SeenTask]:
    """Check the tasks that were shown: 1 to 200, none of them twice."""
    if not 1 <= len(seen) <= fields.MAX_PAGE_SIZE:
        raise invalid("tasks", f"must hold 1 to {fields.MAX_PAGE_SIZE} of them in one request; send the others apart")
    known: set[str] = set()
    read = []
    for index, each in enumerate(seen):
        task_id = fields.key(f"tasks[{index}].task_id", each.task_id)
        if task_id in known:
            raise invalid(f"tasks[{index}].task_id", "stands there twice")
        known.add(task_id)
        if not each.HasField("updated_at"):
            raise invalid(f"tasks[{index}].updated_at", "is required: as it was shown")
        read.append(SeenTask(task_id, utc_text(datetime_of(f"tasks[{index}].updated_at", each.updated_at))))
    return read


def outcome_message(kind: DecisionKind, outcome: DecisionOutcome) -> operations_pb2.DecisionOutcome:
    """Write what a decision would come to for a task."""
    task = outcome.task
    return operations_pb2.DecisionOutcome(
        task_id=task.task_id,
        site=task.site,
        account=task.account,
        status=task_status_to(task.status),
        placement=placement_to(task.placement),
        updated_at=timestamp(task.updated_at),
        becomes=task_status_to(BECOMES[kind] if outcome.refusal is None else None),
        refusal=_refusal(outcome.refusal),
        needs_second_person=outcome.needs_second_person,
    )


def decided_message(decided: DecidedTask) -> operations_pb2.DecidedTask:
    """Write what became of a task."""
    return operations_pb2.DecidedTask(
        task_id=decided.task_id, status=task_status_to(decided.status), refusal=_refusal(decided.refusal)
    )


def _refusal(refusal: Refusal | None) -> errors_pb2.ErrorDetail | None:
    return None if refusal is None else detail_of(refusal)
