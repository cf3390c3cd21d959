"""Each method of the contract, with a state of the gateway in which it has something to do."""

import importlib
import pkgutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import ordergateway.v1
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from ordergateway.v1 import account_queries_pb2, operations_pb2, orders_pb2

from tests.cancellation.rig import Rig
from tests.simulation.approvers import APPROVER, COLLEAGUE

SESSION, JOURNAL = "session-of-worker-1", "journal-of-worker-1"
WAIT = Duration(seconds=5)
KIND = account_queries_pb2.QUERY_KIND_ORDER_LIST
BUDGET = {"budget_id": "house", "period": "BUDGET_PERIOD_DAY", "limit_yen": 3_000, "reason": "a reason"}
ADDRESS = "https://upstream.example/orders"


def _methods() -> Mapping[str, MethodDescriptor]:
    names = [f"{ordergateway.v1.__name__}.{module.name}" for module in pkgutil.iter_modules(ordergateway.v1.__path__)]
    services = [
        service
        for name in names
        if name.endswith("_pb2")
        for service in importlib.import_module(name).DESCRIPTOR.services_by_name.values()
    ]
    return {f"{service.name}/{method.name}": method for service in services for method in service.methods}


METHODS = _methods()
"""All methods of the contract as it was generated."""


def request_of(method: str, **fields: Any) -> tuple[str, Message]:
    """Full path and message of a call."""
    described = METHODS[method]
    assert described.containing_service is not None
    path = f"/{described.containing_service.full_name}/{described.name}"
    return path, GetMessageClass(described.input_type)(**fields)


async def ask(rig: Rig, method: str, **fields: Any) -> list[Any]:
    return await rig.call(*request_of(method, **fields))


class Effect(Enum):
    CHANGES = auto()
    READS = auto()
    LEASES = auto()
    """Waits for something to take."""
    FOLLOWS = auto()
    """Waits for changes of something."""


Step = Callable[[Rig], Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Case:
    """A call. `steps` come before it, `meanwhile` while it waits."""

    method: str
    fields: Callable[[Rig], dict[str, Any]]
    effect: Effect = Effect.CHANGES
    steps: tuple[Step, ...] = ()
    meanwhile: Step | None = None
    name: str = ""

    def __str__(self) -> str:
        return self.method.partition("/")[2] + (f", {self.name}" if self.name else "")

    async def prepare(self, rig: Rig) -> None:
        for step in self.steps:
            await step(rig)

    def request(self, rig: Rig) -> tuple[str, Message]:
        return request_of(self.method, **self.fields(rig))


async def submit(rig: Rig, task_id: str = "t-1") -> None:
    await ask(
        rig, "OrderService/SubmitOrder", task_id=task_id, site="sandbox", intent_json="{}", callback_url=ADDRESS
    )  # fmt: skip


async def submit_for_approval(rig: Rig) -> None:
    """Who calls from then on is somebody else."""
    await ask(
        rig, "OrderService/SubmitOrder",
        task_id="t-1", site="sandbox", intent_json="{}", callback_url=ADDRESS, requires_approval=True,
    )  # fmt: skip
    rig.metadata = APPROVER


async def lease(rig: Rig) -> None:
    rig.token = (await ask(rig, "OrderLeaseService/LeaseOrders", **waiting(rig)))[-1].lease.lease_token


async def renew(rig: Rig) -> None:
    await ask(rig, "OrderLeaseService/RenewLease", **held(rig))


async def report(rig: Rig) -> None:
    await ask(rig, "OrderLeaseService/ReportOrder", **ordered(rig))


async def expire(rig: Rig) -> None:
    await ask(rig, "OperationsService/ExpireOrder", **person(rig))


async def look(rig: Rig) -> None:
    (answer,) = await ask(rig, "OrderService/GetOrder", task_id="t-1")
    rig.seen_at = answer.task.updated_at


async def requeue(rig: Rig) -> None:
    await ask(rig, "OperationsService/RequeueOrder", **person(rig))


async def cancel(rig: Rig) -> None:
    await ask(rig, "OrderService/CancelOrder", **person(rig))


async def pause(rig: Rig) -> None:
    await ask(rig, "OperationsService/PauseDispatch", reason="a reason")


async def test_callback(rig: Rig) -> None:
    filed = await ask(rig, "OperationsService/SendTestCallback", url=ADDRESS)
    rig.token = filed[0].callback.callback_id


async def submit_query(rig: Rig) -> None:
    await ask(rig, "AccountQueryService/SubmitQuery", **query(rig))


async def lease_query(rig: Rig) -> None:
    await ask(rig, "QueryLeaseService/LeaseQueries", **waiting_for_query(rig))


async def report_query(rig: Rig) -> None:
    await ask(rig, "QueryLeaseService/ReportQueryResult", **result(rig))


def nothing(_rig: Rig) -> dict[str, Any]:
    return {}


def person(_rig: Rig) -> dict[str, Any]:
    return {"task_id": "t-1", "reason": "a reason"}


def decided(rig: Rig) -> dict[str, Any]:
    seen = operations_pb2.SeenTask(task_id="t-1", updated_at=rig.seen_at)
    return {"decision": "DECISION_KIND_REQUEUE", "reason": "a reason", "tasks": [seen]}


def one_task(_rig: Rig) -> dict[str, Any]:
    return {"task_id": "t-1"}


def one_query(_rig: Rig) -> dict[str, Any]:
    return {"query_id": "q-1"}


def query(_rig: Rig) -> dict[str, Any]:
    return {"query_id": "q-1", "site": "sandbox", "kind": KIND, "params_json": "{}"}


def result(_rig: Rig) -> dict[str, Any]:
    return {"query_id": "q-1", "worker_id": "w1", "attempt": 1, "result_json": '{"orders": []}'}


def waiting(_rig: Rig) -> dict[str, Any]:
    return {"worker_id": "w1", "session_id": SESSION, "journal_id": JOURNAL, "sites": ["sandbox"], "wait": WAIT}


def waiting_for_query(_rig: Rig) -> dict[str, Any]:
    return {"worker_id": "w1", "session_id": SESSION, "sites": ["sandbox"], "wait": WAIT}


def held(rig: Rig) -> dict[str, Any]:
    return {"task_id": "t-1", "worker_id": "w1", "lease_token": rig.token}


def ordered(rig: Rig) -> dict[str, Any]:
    return held(rig) | {
        "sequence": 1, "state": orders_pb2.ORDER_STATE_ORDERED, "site_order_id": "A-1", "terminal": True,
        "terminal_status": orders_pb2.TASK_STATUS_NEEDS_HUMAN,
    }  # fmt: skip


def late(rig: Rig) -> dict[str, Any]:
    return ordered(rig) | {"sequence": 2}


def permit(rig: Rig) -> dict[str, Any]:
    return held(rig) | {"journal_id": JOURNAL, "attests_no_click_record": True}


HELD: tuple[Step, ...] = (submit, lease, renew)
STALE: tuple[Step, ...] = (*HELD, expire)
LATE: tuple[Step, ...] = (*STALE, lambda rig: refused(rig, "OrderLeaseService/ReportOrder", late))


def one_proposal(_rig: Rig) -> dict[str, Any]:
    return {"proposal_id": 1, "reason": "a reason"}


async def as_colleague(rig: Rig) -> None:
    rig.metadata = COLLEAGUE


PROPOSED: tuple[Step, ...] = (
    submit_for_approval,
    lambda rig: refused(rig, "OperationsService/ApproveOrder", lambda rig: person(rig) | {"max_total_yen": 100_001}),
)


async def refused(rig: Rig, method: str, fields: Callable[[Rig], dict[str, Any]]) -> None:
    """A call whose refusal is what matters."""
    try:
        await ask(rig, method, **fields(rig))
    except Exception:  # noqa: BLE001 -- the status has its own tests
        return
    raise AssertionError(f"{method} was not refused")


def late_alert(rig: Rig) -> dict[str, Any]:
    (number,) = (row[0] for row in rig.rows()["alerts"] if "late_report" in row)
    return {"alert_id": number, "reason": "a reason"}


async def set_budget(rig: Rig) -> None:
    await ask(rig, "OperationsService/SetBudget", **BUDGET)


READS, LEASES, FOLLOWS = Effect.READS, Effect.LEASES, Effect.FOLLOWS
CASES = (
    Case("OrderService/SubmitOrder", lambda _: {"task_id": "t-1", "site": "sandbox", "intent_json": "{}"}),
    Case("OrderService/SubmitOrders", lambda _: {"orders": [_order("t-1"), _order("t-2")]}),
    Case("OrderService/GetOrder", one_task, READS, (submit,)),
    Case("OrderService/ListOrders", nothing, READS, (submit,)),
    Case("OrderService/WatchOrder", one_task, FOLLOWS, (submit,), cancel),
    Case("OrderService/CancelOrder", person, steps=(submit,)),
    Case("OrderLeaseService/LeaseOrders", waiting, LEASES, (submit,), name="at once"),
    Case("OrderLeaseService/LeaseOrders", waiting, LEASES, (), submit, name="later"),
    Case("OrderLeaseService/RenewLease", held, steps=(submit, lease)),
    Case("OrderLeaseService/ReportOrder", ordered, steps=HELD),
    Case("OrderLeaseService/RequestSubmitPermit", permit, steps=HELD),
    Case("OrderLeaseService/ReclaimOrder", lambda _: _reclaim(), steps=STALE),
    Case("AccountQueryService/SubmitQuery", query),
    Case("AccountQueryService/GetQuery", one_query, READS, (submit_query,)),
    Case("AccountQueryService/ListQueries", nothing, READS, (submit_query,)),
    Case("AccountQueryService/WatchQuery", one_query, FOLLOWS, (submit_query, lease_query), report_query),
    Case("QueryLeaseService/LeaseQueries", waiting_for_query, LEASES, (submit_query,), name="at once"),
    Case("QueryLeaseService/LeaseQueries", waiting_for_query, LEASES, (), submit_query, name="later"),
    Case("QueryLeaseService/ReportQueryResult", result, steps=(submit_query, lease_query)),
    Case("CatalogService/ListCatalogOrders", nothing, READS),
    Case("CatalogService/Discover", lambda _: {"site": "sandbox"}),
    Case("CatalogService/ListDiscrepancies", nothing, READS),
    Case("OperationsService/GetInfo", nothing, READS),
    Case("OperationsService/GetHealth", nothing, READS, (submit,)),
    Case("OperationsService/ListDecisions", nothing, READS, STALE),
    Case(
        "OperationsService/ListDecisionOutcomes",
        lambda _: {"decision": "DECISION_KIND_REQUEUE", "filter": {"site": "sandbox"}},
        READS,
        STALE,
    ),
    Case("OperationsService/DecideOrders", decided, steps=(*STALE, look)),
    Case("OperationsService/ListApprovals", nothing, READS, (submit_for_approval,)),
    Case(
        "OperationsService/ApproveOrder", lambda rig: person(rig) | {"max_total_yen": 1}, steps=(submit_for_approval,)
    ),
    Case("OperationsService/DenyOrder", person, steps=(submit_for_approval,)),
    Case("OperationsService/RequeueOrder", person, steps=STALE),
    Case("OperationsService/WithdrawOrder", person, steps=(*STALE, requeue)),
    Case(
        "OperationsService/ResolveOrder",
        lambda rig: person(rig) | {"outcome": "TASK_STATUS_SUCCEEDED", "site_order_id": "site-order-1"},
        steps=STALE,
    ),
    Case("OperationsService/ListProposals", nothing, READS, PROPOSED),
    Case("OperationsService/ConfirmProposal", one_proposal, steps=(*PROPOSED, as_colleague)),
    Case("OperationsService/WithdrawProposal", one_proposal, steps=PROPOSED),
    Case("OperationsService/ExpireOrder", person, steps=HELD),
    Case("OperationsService/PauseDispatch", lambda _: {"reason": "a reason"}),
    Case("OperationsService/ResumeDispatch", lambda _: {"reason": "a reason"}, steps=(pause,)),
    Case("OperationsService/ListWorkers", nothing, READS, (submit, lease)),
    Case("OperationsService/ForgetWorker", lambda _: {"worker_id": "w1", "reason": "a reason"}, steps=STALE),
    Case("OperationsService/ListEvents", nothing, READS, (submit,)),
    Case("OperationsService/ListAlerts", nothing, READS, STALE),
    Case("OperationsService/ClearAlert", late_alert, steps=LATE),
    Case("OperationsService/ListCallbacks", nothing, READS, STALE),
    Case("OperationsService/ReplayCallback", lambda rig: {"callback_id": rig.token}, steps=(test_callback,)),
    Case("OperationsService/SendTestCallback", lambda _: {"url": ADDRESS}),
    Case("OperationsService/SendTestNotification", nothing),
    Case("OperationsService/SetBudget", lambda _: BUDGET),
    Case("OperationsService/ListBudgets", nothing, READS, (set_budget,)),
    Case("OperationsService/GetBudget", lambda _: {"budget_id": "house"}, READS, (set_budget,)),
    Case("OperationsService/DeleteBudget", lambda _: {"budget_id": "house", "reason": "a reason"}, steps=(set_budget,)),
    Case("OperationsService/ListStatement", lambda _: {"day": "2026-11-30"}, READS, (submit,)),
    Case("OperationsService/CreateBackup", nothing, steps=(submit,)),
)


def _order(task_id: str) -> dict[str, Any]:
    return {"task_id": task_id, "site": "sandbox", "intent_json": "{}"}


def _reclaim() -> dict[str, Any]:
    return {"task_id": "t-1", "worker_id": "w1", "session_id": SESSION, "journal_id": JOURNAL}
