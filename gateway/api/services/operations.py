"""OperationsService: operations for the person in charge; operations.proto says what each method does."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from ordergateway.v1 import operations_pb2

from gateway.api.answers import accepted, converted
from gateway.api.call import Call
from gateway.api.codec import operations as codec
from gateway.api.codec.orders import task_message
from gateway.api.codec.page_tokens import make_page_token, page_position, page_token
from gateway.api.services.approvals import ApprovalOperations
from gateway.api.services.budgets import BudgetOperations
from gateway.api.services.bulk_decisions import BulkDecisions
from gateway.api.services.callbacks import CallbackOperations
from gateway.api.services.notifications import NotificationTests, SendTest
from gateway.api.services.proposals import ProposalOperations
from gateway.api.services.statements import Statements
from gateway.domain import fields
from gateway.domain.contract_version import CONTRACT_VERSION
from gateway.domain.health import Pause
from gateway.domain.models import Actor, Policy
from gateway.domain.operations import BackupFacts
from gateway.domain.refusals import Refusal
from gateway.health import HealthCheck
from gateway.operations.actions import expire_now, requeue, resolve, withdraw
from gateway.operations.alerts import answer_alert, list_alerts
from gateway.operations.decisions import list_decisions
from gateway.operations.history import list_events
from gateway.operations.pause import forget_worker, pause, paused_sites, resume
from gateway.operations.problems import record_backup
from gateway.orders.read import workers_seen
from gateway.store.gateways import VERSION
from gateway.store.port import Store, StoreUnavailableError

_log = logging.getLogger(__name__)

BackUp = Callable[[], Awaitable[BackupFacts | Refusal]]
"""Makes a verified online backup."""


class OperationsService(
    CallbackOperations,
    ApprovalOperations,
    ProposalOperations,
    BulkDecisions,
    BudgetOperations,
    Statements,
    NotificationTests,
):
    """The methods of the service, free of any transport; those of a subject of their own are inherited."""

    def __init__(self, store: Store, policy: Policy, back_up: BackUp, check: HealthCheck, send_test: SendTest) -> None:
        CallbackOperations.__init__(self, store)
        BulkDecisions.__init__(self, store, policy)
        BudgetOperations.__init__(self, store, policy)
        Statements.__init__(self, store, policy)
        NotificationTests.__init__(self, send_test)
        self._back_up = back_up
        self._check = check
        self._backups: set[asyncio.Task[BackupFacts | Refusal]] = set()

    async def get_health(
        self, request: operations_pb2.GetHealthRequest, call: Call
    ) -> operations_pb2.GetHealthResponse:
        """Return how the gateway and its workers are."""
        return codec.health_message(await self._check.look())

    async def get_info(self, request: operations_pb2.GetInfoRequest, call: Call) -> operations_pb2.GetInfoResponse:
        """Return which contract this gateway speaks."""
        return operations_pb2.GetInfoResponse(version=VERSION, contract_version=CONTRACT_VERSION)

    async def list_decisions(
        self, request: operations_pb2.ListDecisionsRequest, call: Call
    ) -> operations_pb2.ListDecisionsResponse:
        """Return one page of tasks that need a decision."""
        after = page_position(request.page_token, [], 2)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.read(
            list_decisions, self._policy, None if after is None else (after[0], after[1]), size
        )
        return operations_pb2.ListDecisionsResponse(
            decisions=await converted(codec.decision_message, page.items),
            next_page_token=make_page_token(page.next_after, []),
        )

    async def requeue_order(
        self, request: operations_pb2.RequeueOrderRequest, call: Call
    ) -> operations_pb2.RequeueOrderResponse:
        """Put a stale task back into the queue."""
        task_id, reason = fields.key("task_id", request.task_id), codec.reason(request)
        done = accepted(await self._store.write(requeue, task_id, reason, _actor(call)))
        return operations_pb2.RequeueOrderResponse(task=task_message(done))

    async def withdraw_order(
        self, request: operations_pb2.WithdrawOrderRequest, call: Call
    ) -> operations_pb2.WithdrawOrderResponse:
        """Take a requeued task out of the queue again."""
        task_id, reason = fields.key("task_id", request.task_id), codec.reason(request)
        done = accepted(await self._store.write(withdraw, task_id, reason, _actor(call)))
        return operations_pb2.WithdrawOrderResponse(task=task_message(done))

    async def resolve_order(
        self, request: operations_pb2.ResolveOrderRequest, call: Call
    ) -> operations_pb2.ResolveOrderResponse:
        """Record what happened on the site, and end the task."""
        told = codec.resolution(request)
        done = accepted(await self._store.write(resolve, self._policy, told, _actor(call)))
        return operations_pb2.ResolveOrderResponse(task=task_message(done))

    async def expire_order(
        self, request: operations_pb2.ExpireOrderRequest, call: Call
    ) -> operations_pb2.ExpireOrderResponse:
        """End the lease of a worker that is known to be dead."""
        task_id, reason = fields.key("task_id", request.task_id), codec.reason(request)
        done = accepted(await self._store.write(expire_now, task_id, reason, _actor(call)))
        return operations_pb2.ExpireOrderResponse(task=task_message(done))

    async def pause_dispatch(
        self, request: operations_pb2.PauseDispatchRequest, call: Call
    ) -> operations_pb2.PauseDispatchResponse:
        """Stop dispatch."""
        site = codec.site_or_all(request.site, self._policy.sites)
        pauses = await self._store.write(pause, site, codec.reason(request), _actor(call))
        return operations_pb2.PauseDispatchResponse(pauses=_pauses(pauses))

    async def resume_dispatch(
        self, request: operations_pb2.ResumeDispatchRequest, call: Call
    ) -> operations_pb2.ResumeDispatchResponse:
        """Start dispatch again."""
        # A site that is configured no more may still be paused.
        paused = await self._store.read(paused_sites)
        site = codec.site_or_all(request.site, (*self._policy.sites, *paused))
        pauses = accepted(await self._store.write(resume, self._policy, site, codec.reason(request), _actor(call)))
        return operations_pb2.ResumeDispatchResponse(pauses=_pauses(pauses))

    async def list_workers(
        self, request: operations_pb2.ListWorkersRequest, call: Call
    ) -> operations_pb2.ListWorkersResponse:
        """Return the workers heard of."""
        workers = await self._store.read(workers_seen, self._policy)
        return operations_pb2.ListWorkersResponse(workers=[codec.worker_message(worker) for worker in workers])

    async def forget_worker(
        self, request: operations_pb2.ForgetWorkerRequest, call: Call
    ) -> operations_pb2.ForgetWorkerResponse:
        """Forget a worker that was retired on purpose."""
        worker_id, reason = fields.key("worker_id", request.worker_id), codec.reason(request)
        accepted(await self._store.write(forget_worker, worker_id, reason, _actor(call)))
        return operations_pb2.ForgetWorkerResponse()

    async def list_events(
        self, request: operations_pb2.ListEventsRequest, call: Call
    ) -> operations_pb2.ListEventsResponse:
        """Return one page of the history."""
        wanted = codec.history_filter(request)
        filters = [wanted.subject or "", *wanted.kinds, wanted.since or "", wanted.until or ""]
        below = page_token(request.page_token, filters)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.read(list_events, wanted, below, size)
        return operations_pb2.ListEventsResponse(
            events=await converted(codec.event_message, page.items),
            next_page_token=make_page_token(page.next_after, filters),
        )

    async def list_alerts(
        self, request: operations_pb2.ListAlertsRequest, call: Call
    ) -> operations_pb2.ListAlertsResponse:
        """Return one page of alerts."""
        kind = codec.alert_kind(request.kind)
        filters = [kind or "", "all" if request.include_cleared else "standing"]
        below = page_token(request.page_token, filters)
        size = fields.page_size("page_size", request.page_size)
        page = await self._store.read(list_alerts, kind, request.include_cleared, below, size)
        return operations_pb2.ListAlertsResponse(
            alerts=[codec.alert_message(alert) for alert in page.items],
            next_page_token=make_page_token(page.next_after, filters),
        )

    async def clear_alert(
        self, request: operations_pb2.ClearAlertRequest, call: Call
    ) -> operations_pb2.ClearAlertResponse:
        """Clear an alert that a person has dealt with."""
        reason = codec.reason(request)
        alert = accepted(await self._store.write(answer_alert, request.alert_id, reason, _actor(call)))
        return operations_pb2.ClearAlertResponse(alert=codec.alert_message(alert))

    async def create_backup(
        self, request: operations_pb2.CreateBackupRequest, call: Call
    ) -> operations_pb2.CreateBackupResponse:
        """Make an online backup and verify it."""
        # It goes on to its end, and on record, though the caller may have gone away.
        making = asyncio.create_task(self._back_up_on_record(_actor(call)))
        self._backups.add(making)
        making.add_done_callback(self._backups.discard)
        return codec.backup_message(accepted(await asyncio.shield(making)))

    async def _back_up_on_record(self, actor: Actor) -> BackupFacts | Refusal:
        made = await self._back_up()
        if isinstance(made, BackupFacts):
            try:
                await self._store.write(record_backup, made, actor)
            except StoreUnavailableError as error:
                _log.warning("the backup %s is whole, but could not be put on record: %s", made.file_name, error)
        return made


def _actor(call: Call) -> Actor:
    return Actor(call.identity.name)


def _pauses(pauses: tuple[Pause, ...]) -> list[operations_pb2.Pause]:
    return [codec.pause_message(pause) for pause in pauses]
