"""The order machine as any client of the contract reaches it."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.duration_pb2 import Duration
from ordergateway.v1 import operations_pb2, order_leases_pb2, orders_pb2

from gateway.domain.states import OrderState, Placement, TaskStatus
from tests.gateway.support.grpc_api import RefusedCallError, duration, state_number, status_of, told
from tests.gateway.support.manual_time import ManualTime
from tests.properties.order_model import REASON
from tests.properties.order_terms import (
    SECOND,
    Filed,
    Given,
    Holder,
    Look,
    Process,
    Refused,
    Seen,
    Told,
    View,
    facts_of,
)
from tests.properties.served_gateway import ServedGateway

T = TypeVar("T")
A = TypeVar("A")

OF_SILENCE = ("ALERT_KIND_WORKER_OFFLINE", "ALERT_KIND_TASK_UNCLAIMED")
"""Alerts of a sweep that the model leaves out: they judge silence, not orders."""


class OrdersOverGrpc:
    """See `tests.properties.order_terms.Orders`."""

    inside = False

    def __init__(self, folder: Path, time: ManualTime, scope: str) -> None:
        self._gateway = ServedGateway(folder, time, lease_scope=scope)

    def submit(self, task_id: str, site: str, intent_json: str) -> Filed:
        done = self._gateway.run(self._gateway.api.submit(task_id, intent_json, site))
        return Filed(done.created, _status(done.status), done.intent_matches)

    def cancel(self, task_id: str) -> TaskStatus | Refused:
        return self._task_status(self._gateway.api.cancel(task_id, REASON))

    def lease(self, process: Process, sites: tuple[str, ...]) -> Given | None:
        identity: dict[str, Any] = {"session_id": process.session, "journal_id": process.journal}
        lease = self._gateway.run(self._gateway.api.lease(process.worker, **identity, sites=sites))
        return None if lease is None else _given(lease)

    def reclaim(self, process: Process, task_id: str) -> Given | Refused:
        assert process.session is not None
        assert process.journal is not None
        call = self._gateway.api.reclaim(task_id, process.worker, process.session, process.journal)
        return self._or_refused(call, _given)

    def renew(self, holder: Holder) -> int | Refused:
        call = self._gateway.api.renew(_lease(holder), holder.worker)
        return self._or_refused(call, lambda done: _microseconds(done.lease_age))

    def report(self, holder: Holder, told: Told) -> tuple[TaskStatus, bool] | Refused:
        assert told.state is not None
        assert told.sequence is not None
        fields = {"terminal": told.terminal, **dict(told.facts)}
        if told.ends_as is not None:
            fields["terminal_status"] = _number(told.ends_as)
        call = self._gateway.api.report(_lease(holder), told.state, told.sequence, holder.worker, **fields)
        return self._or_refused(call, lambda done: (_status(done.status), done.recorded))

    def permit(self, holder: Holder, journal: str, attests: bool, look: Look | None) -> int | Refused:
        fields: dict[str, Any] = {"attests_no_click_record": attests}
        if look is not None:
            fields["verification"] = order_leases_pb2.Verification(
                verdict=order_leases_pb2.Verification.Verdict.Value(f"VERDICT_{look.verdict.name}"),
                window_fully_covered=look.covered,
                evidence_ref=look.evidence or "",
                begun_at_lease_age=duration(look.begun / SECOND),
            )
        call = self._gateway.api.permit(_lease(holder), holder.worker, journal, **fields)
        return self._or_refused(call, lambda done: _microseconds(done.valid_for))

    def decide(self, decision: str, task_id: str) -> TaskStatus | Refused:
        person, asked = self._gateway.api.operations, {"task_id": task_id, "reason": REASON}
        match decision:
            case "requeue":
                return self._task_status(_task(person.RequeueOrder(operations_pb2.RequeueOrderRequest(**asked))))
            case "withdraw":
                return self._task_status(_task(person.WithdrawOrder(operations_pb2.WithdrawOrderRequest(**asked))))
            case _:
                return self._task_status(_task(person.ExpireOrder(operations_pb2.ExpireOrderRequest(**asked))))

    def resolve(
        self, task_id: str, outcome: TaskStatus, state: OrderState | None, number: str | None, although: bool
    ) -> TaskStatus | Refused:
        request = operations_pb2.ResolveOrderRequest(
            task_id=task_id, reason=REASON, outcome=_number(outcome), site_order_id=number, although_impossible=although
        )
        if state is not None:
            request.state = state_number(state)
        return self._task_status(_task(self._gateway.api.operations.ResolveOrder(request)))

    def pause(self, site: str) -> frozenset[str]:
        request = operations_pb2.PauseDispatchRequest(site=site, reason=REASON)
        return self._pauses(self._gateway.api.operations.PauseDispatch(request))

    def resume(self, site: str) -> frozenset[str]:
        request = operations_pb2.ResumeDispatchRequest(site=site, reason=REASON)
        return self._pauses(self._gateway.api.operations.ResumeDispatch(request))

    def give_back(self, task_id: str, token: str) -> bool:
        raise NotImplementedError

    def sweep(self) -> None:
        raise NotImplementedError

    def restore(self) -> None:
        raise NotImplementedError

    def restart(self, scope: str, *, crash: bool = False, meanwhile: Callable[[], None] = lambda: None) -> None:
        assert not crash
        self._gateway.restart(meanwhile, lease_scope=scope)

    def view(self) -> View:
        return self._gateway.run(self._view())

    def close(self) -> None:
        self._gateway.close()

    async def _view(self) -> View:
        tasks = await self._gateway.api.list()
        person: Any = self._gateway.api.operations
        alerts = await told(person.ListAlerts(operations_pb2.ListAlertsRequest()))
        late = await told(person.ListEvents(operations_pb2.ListEventsRequest(kinds=["report_refused"])))
        standing = frozenset(
            (name.removeprefix("ALERT_KIND_").lower(), alert.subject)
            for alert in alerts.alerts
            if (name := operations_pb2.AlertKind.Name(alert.kind)) not in OF_SILENCE
        )
        assert (tasks.next_page_token, alerts.next_page_token, late.next_page_token) == ("", "", "")
        return View(tuple(map(_seen, tasks.tasks)), standing, len(late.events))

    def _task_status(self, call: Coroutine[Any, Any, orders_pb2.Task]) -> TaskStatus | Refused:
        return self._or_refused(call, status_of)

    def _pauses(self, call: Any) -> frozenset[str]:
        return frozenset(pause.site for pause in self._gateway.run(told(call)).pauses)

    def _or_refused(self, call: Coroutine[Any, Any, T], read: Callable[[T], A]) -> A | Refused:
        try:
            return read(self._gateway.run(call))
        except RefusedCallError as error:
            return Refused(frozenset({error.reason}), error.detail.recorded_late)


async def _task(call: Any) -> orders_pb2.Task:
    task: orders_pb2.Task = (await told(call)).task
    return task


def _lease(holder: Holder) -> order_leases_pb2.Lease:
    return order_leases_pb2.Lease(task_id=holder.task_id, lease_token=holder.token or "")


def _given(lease: order_leases_pb2.Lease) -> Given:
    return Given(
        lease.task_id,
        lease.lease_count,
        _state(lease.known_state),
        lease.intent_json,
        frozenset(lease.other_site_order_ids),
        lease.other_site_order_ids_truncated,
        lease.lease_token,
    )


def _seen(task: orders_pb2.Task) -> Seen:
    placement = orders_pb2.Placement.Name(task.placement).removeprefix("PLACEMENT_").lower()
    return Seen(
        task_id=task.task_id,
        site=task.site,
        intent_json=task.intent_json,
        status=status_of(task),
        owner=task.lease_owner if task.HasField("lease_owner") else None,
        lease_count=task.lease_count,
        latest=_state(task.latest_state),
        placement=Placement(placement),
        permitted=task.HasField("submit_permitted_at"),
        reports=tuple((OrderState(_state(each.state) or ""), facts_of(_Optional(each))) for each in task.reports),
    )


class _Optional:
    """A message whose absent fields are None."""

    def __init__(self, message: Any) -> None:
        self._message = message

    def __getattr__(self, name: str) -> Any:
        absent = name != "detail" and not self._message.HasField(name)
        return None if absent else getattr(self._message, name)


def _state(number: int) -> OrderState | None:
    name = orders_pb2.OrderState.Name(orders_pb2.OrderState.ValueType(number)).removeprefix("ORDER_STATE_").lower()
    return None if name == "unspecified" else OrderState(name)


def _status(number: int) -> TaskStatus:
    name = orders_pb2.TaskStatus.Name(orders_pb2.TaskStatus.ValueType(number))
    return TaskStatus(name.removeprefix("TASK_STATUS_").lower())


def _number(status: TaskStatus) -> orders_pb2.TaskStatus.ValueType:
    return orders_pb2.TaskStatus.Value(f"TASK_STATUS_{status.name}")


def _microseconds(amount: Duration) -> int:
    return amount.ToMicroseconds()
