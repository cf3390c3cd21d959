"""Variants of the gateway that lack one safeguard each."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import gateway.api.services.order_leases as lease_service
import gateway.clock
import gateway.dispatch.order_lease_source
import gateway.operations.actions
import gateway.orders.expire
import gateway.orders.hold
import gateway.orders.lease
import gateway.orders.permit
import gateway.orders.report
import gateway.orders.settle
import gateway.orders.slots
import gateway.orders.transition
import gateway.orders.transition_alerts
import gateway.restore
import gateway.store.sqlite.writer
from gateway.domain.leases import Via
from gateway.domain.models import GATEWAY, AlertKind
from gateway.domain.refusals import Reason, Refusal, RefusedError
from gateway.domain.states import TaskStatus
from gateway.domain.transitions import Event
from gateway.orders.transition import transition
from gateway.store import leases, tasks
from gateway.store.named_sql import statements
from gateway.store.sqlite.group import GroupRunner
from gateway.store.sqlite.transaction import SqliteTransaction
from gateway.store.sqlite.writer import GroupWriter
from tests.simulation.mutants.registry import mutant, replaced, sql, without


@mutant
def no_token_check(stack: ExitStack) -> None:
    """The lease token is not checked: the worker's name is enough."""

    def is_holder(lease: Any, holder: Any) -> bool:
        return lease is not None and lease.worker_id == holder.worker_id

    replaced(stack, gateway.orders.hold, "is_holder", is_holder)
    replaced(stack, gateway.orders.report, "is_holder", is_holder)


@mutant
def settle_counted_from_the_permit(stack: ExitStack) -> None:
    """The settle time starts when the permit is granted, not at the later of its expiry and the lease's end."""

    def settled_us(policy: Any, leases: Any) -> int | None:
        granted = [lease.permit_expires_us - policy.permit_ttl // timedelta(microseconds=1) for lease in leases]
        return max(granted) + policy.permit_settle // timedelta(microseconds=1) if granted else None

    replaced(stack, gateway.orders.permit, "settled_us", settled_us)


@mutant
def no_settle_time(stack: ExitStack) -> None:
    """A second permit is granted without waiting for the settle time."""
    replaced(stack, gateway.orders.permit, "settled_us", lambda _policy, _leases: 0)


@mutant
def second_permit_to_another_journal(stack: ExitStack) -> None:
    """A second permit is granted to another journal than the first."""
    refuse, read = gateway.orders.permit._earlier_leases_refuse, leases.of_task

    def mutated(tx: Any, policy: Any, task: Any, lease: Any, request: Any, now: Any) -> Any:
        def as_own(tx: Any, task_id: str) -> Any:
            return [replace(lease, journal_id=request.journal_id) for lease in read(tx, task_id)]

        with patch.object(leases, "of_task", as_own):
            return refuse(tx, policy, task, lease, request, now)

    replaced(stack, gateway.orders.permit, "_earlier_leases_refuse", mutated)


@mutant
def automatic_requeue(stack: ExitStack) -> None:
    """An expired lease puts its task back into the queue."""
    expire = gateway.orders.expire.expire

    def mutated(tx: Any, now: Any, task: Any, *args: Any, **options: Any) -> Any:
        stale = expire(tx, now, task, *args, **options)
        return transition(tx, now, stale, Event.REQUEUE, TaskStatus.QUEUED, GATEWAY, queued_us=now.elapsed_us)

    for module in (gateway.orders.expire, gateway.orders.hold, gateway.orders.lease):
        replaced(stack, module, "expire", mutated)


@mutant
def past_the_table(stack: ExitStack) -> None:
    """The transition function does not check the target, and an expired lease requests `queued`."""

    def mutated(tx: Any, now: Any, task: Any, event: Any, _to: Any, *args: Any, **changes: Any) -> Any:
        return transition(tx, now, task, event, TaskStatus.QUEUED, *args, **changes)

    replaced(stack, gateway.orders.transition, "leads_to", lambda *_: True)
    replaced(stack, gateway.orders.expire, "transition", mutated)


@mutant
def row_count_ignored(stack: ExitStack) -> None:
    """The row count of a transition is not checked, and the statement that makes a task stale matches no row."""
    replaced(stack, SqliteTransaction, "change_one", SqliteTransaction.change)
    sql(stack, task_move=f"{statements()['task_move']} AND :status <> 'stale'")


@mutant
def expiry_only_by_the_sweep(stack: ExitStack) -> None:
    """Renewals, reports and permit requests do not check for expiry; only the sweep does."""
    for module in (gateway.orders.hold, gateway.orders.report):
        replaced(stack, module, "expire_if_due", lambda _tx, _now, task: task)


@mutant
def refusal_rolled_back_with_its_record(stack: ExitStack) -> None:
    """A refusal is an exception, so its record is rolled back with the transaction."""
    report = lease_service.report

    def mutated(*args: Any) -> Any:
        told = report(*args)
        if isinstance(told, Refusal):
            raise RefusedError(told)
        return told

    replaced(stack, lease_service, "report", mutated)


@mutant
def null_erases(stack: ExitStack) -> None:
    """A repeated report overwrites fields that it does not have with null."""
    sql(
        stack,
        report_overwrite="UPDATE reports SET payable_yen = :payable_yen, pay_deadline = :pay_deadline,"
        " site_order_id = :site_order_id, evidence_ref = :evidence_ref, detail = :detail, error_code = :error_code,"
        " lease_number = :lease_number, sequence = :sequence WHERE task_id = :task_id AND state = :state",
    )


@mutant
def undo_without_the_fence(stack: ExitStack) -> None:
    """The lease of a disconnected client is undone, whatever happened to it since."""

    def undo(tx: Any, now: Any, task_id: str, token: str, actor: Any) -> bool:
        task = tasks.find(tx, task_id)
        if task is None or task.status is not TaskStatus.LEASED:
            return False
        tx.change("lease_undo", task_id=task_id, token=token)
        transition(tx, now, task, Event.UNDO, TaskStatus.QUEUED, actor, lease_count=task.lease_count - 1)
        return True

    sql(stack, lease_undo="DELETE FROM leases WHERE task_id = :task_id AND :token <> '' AND ended_at IS NULL")
    replaced(stack, gateway.dispatch.order_lease_source, "undo_lease", undo)
    without(stack, "TRIGGER leases_acknowledged_stay")


@mutant
def order_of_arrival(stack: ExitStack) -> None:
    """The latest state is the one that arrived last, not the one with the highest sequence."""
    mirror, arrived = gateway.orders.report._mirror, iter(range(2**30, 2**31))

    def mutated(tx: Any, now: Any, task: Any, lease: Any, state: Any, told: Any) -> Any:
        return mirror(tx, now, task, lease, state, replace(told, sequence=next(arrived)))

    replaced(stack, gateway.orders.report, "_mirror", mutated)


@mutant
def unknown_numbers_ignored(stack: ExitStack) -> None:
    """A match on the site counts although another task may have an order whose number is unknown."""
    sql(stack, task_possibly_ordered_without_number="SELECT 1 AS found WHERE :site || :task_id || :since IS NULL")


@mutant
def no_pause(stack: ExitStack) -> None:
    """A permit is granted while dispatch is paused."""
    replaced(stack, gateway.orders.permit, "_pause_refuses", lambda _tx, _task: None)


@mutant
def a_lease_for_everybody(stack: ExitStack) -> None:
    """An unacknowledged lease is handed again to any session, not only to its own."""
    sql(
        stack,
        lease_unacknowledged_of_session="SELECT * FROM leases"
        " WHERE ended_at IS NULL AND acknowledged_at IS NULL AND :session_id <> '' LIMIT 1",
    )
    replaced(
        stack, gateway.orders.lease, "_is_unacknowledged_of", lambda lease, _request: lease.acknowledged_at is None
    )


@mutant
def slots_not_unique(stack: ExitStack) -> None:
    """Neither the use case nor the database prevents a second active task in a slot."""
    replaced(stack, gateway.orders.slots, "occupant", lambda *_: None)
    without(stack, "INDEX tasks_one_active_a_slot")


@mutant
def a_reboot_goes_unnoticed(stack: ExitStack) -> None:
    """After a reboot the elapsed clock is read as if it had continued."""
    init = gateway.clock.ServiceClock.__init__

    def mutated(self: Any, machine: Any, _boot_id: str, *args: Any) -> None:
        init(self, machine, machine.boot_id, *args)

    replaced(stack, gateway.clock.ServiceClock, "__init__", mutated)


@mutant
def answered_before_the_commit(stack: ExitStack) -> None:
    """A caller is answered when the operation has run, before its commit."""
    run_plainly, answer = GroupRunner._run_plainly, GroupWriter._answer

    def mutated(self: GroupRunner, group: list[Any], outcome: Any) -> bool:
        done = run_plainly(self, group, outcome)
        if done:
            answer(None, group)  # type: ignore[arg-type]
        return done

    def to_the_rest(self: GroupWriter, group: list[Any]) -> None:
        answer(self, [job for job in group if not job.future.done()])

    replaced(stack, GroupRunner, "_run_plainly", mutated)
    replaced(stack, GroupWriter, "_answer", to_the_rest)


@mutant
def stale_without_an_alert(stack: ExitStack) -> None:
    """An expired lease raises no alert."""
    _never_alerting(stack, AlertKind.TASK_STALE)


@mutant
def needs_human_without_an_alert(stack: ExitStack) -> None:
    """A task that needs a person raises no alert."""
    _never_alerting(stack, AlertKind.TASK_NEEDS_HUMAN)


@mutant
def resolved_before_it_is_settled(stack: ExitStack) -> None:
    """A task is resolved to failed before its permit is settled, while a click may still arrive."""
    replaced(stack, gateway.operations.actions, "_not_settled", lambda *_: None)


@mutant
def second_permit_never_given(stack: ExitStack) -> None:
    """A second permit is always refused, whatever the settle time, the journal and the verification say."""
    refuse = gateway.orders.permit._earlier_leases_refuse

    def mutated(tx: Any, policy: Any, task: Any, lease: Any, request: Any, now: Any) -> Any:
        refusal = refuse(tx, policy, task, lease, request, now)
        earlier = any(
            other.permitted_at and other.lease_number < lease.lease_number for other in leases.of_task(tx, task.task_id)
        )
        if refusal is None and earlier:
            return gateway.orders.permit._refuse(task, Reason.PERMIT_OTHER_JOURNAL, "never twice")
        return refusal

    replaced(stack, gateway.orders.permit, "_earlier_leases_refuse", mutated)


@mutant
def recovered_task_never_permitted(stack: ExitStack) -> None:
    """A recovered task is never granted a permit."""

    def mutated(task: Any, _lease: Any, _request: Any, _now: Any) -> Any:
        never = gateway.orders.permit._refuse(task, Reason.PERMIT_NOT_VERIFIED, "it was in other hands")
        return never if task.lease_count > 1 else None

    replaced(stack, gateway.orders.permit, "_verification_refuses", mutated)


@mutant
def look_before_the_settle_time(stack: ExitStack) -> None:
    """A verification that began before the first permit was settled is accepted for a second one."""
    refuse = gateway.orders.permit._earlier_leases_refuse

    def mutated(*args: Any) -> Any:
        refusal = refuse(*args)
        asked_too_early = refusal is not None and refusal.reason is Reason.PERMIT_NOT_SETTLED and refusal.retry_after
        return refusal if asked_too_early or (refusal and refusal.reason is not Reason.PERMIT_NOT_SETTLED) else None

    replaced(stack, gateway.orders.permit, "_earlier_leases_refuse", mutated)


@mutant
def permit_though_an_order_is_known(stack: ExitStack) -> None:
    """A permit is granted although a report says that an order exists."""
    refuse = gateway.orders.permit._own_lease_refuses

    def mutated(task: Any, *args: Any) -> Any:
        return refuse(replace(task, order_known=False), *args)

    replaced(stack, gateway.orders.permit, "_own_lease_refuses", mutated)


@mutant
def undo_without_token(stack: ExitStack) -> None:
    """An undo does not compare the token: it takes back the task's current unacknowledged lease."""
    sql(
        stack,
        lease_take_back="UPDATE leases SET given_count = given_count - 1 WHERE task_id = :task_id AND :token <> ''"
        " AND ended_at IS NULL AND acknowledged_at IS NULL AND given_count > 0 RETURNING given_count",
        lease_undo="DELETE FROM leases WHERE task_id = :task_id AND :token <> '' AND ended_at IS NULL"
        " AND acknowledged_at IS NULL AND given_count = 0",
    )


@mutant
def undo_of_an_acknowledged_lease(stack: ExitStack) -> None:
    """An undo takes back a lease that its worker has acknowledged meanwhile."""
    sql(
        stack,
        lease_take_back="UPDATE leases SET given_count = 0 WHERE task_id = :task_id AND token = :token"
        " AND ended_at IS NULL RETURNING given_count",
        lease_undo="DELETE FROM leases WHERE task_id = :task_id AND token = :token AND ended_at IS NULL",
    )
    without(stack, "TRIGGER leases_acknowledged_stay")


@mutant
def undo_though_given_again(stack: ExitStack) -> None:
    """An undo for a broken stream takes back a lease that was handed over in another stream."""
    sql(
        stack,
        lease_take_back="UPDATE leases SET given_count = 0 WHERE task_id = :task_id AND token = :token"
        " AND ended_at IS NULL AND acknowledged_at IS NULL RETURNING given_count",
    )


@mutant
def a_caller_that_has_gone_is_served(stack: ExitStack) -> None:
    """An operation runs although its caller disconnected before it began."""
    begun = GroupWriter._begun

    def mutated(self: GroupWriter, error: Any) -> None:
        for job in self._pending:
            if job.future.cancelled():
                job.future = self._loop.create_future()
        begun(self, error)

    replaced(stack, GroupWriter, "_begun", mutated)


@mutant
def unknown_commit_called_undone(stack: ExitStack) -> None:
    """The gateway continues after a commit whose outcome is unknown."""
    replaced(stack, gateway.store.sqlite.writer, "is_undone", lambda _error: True)


@mutant
def late_report_makes_no_order_known(stack: ExitStack) -> None:
    """A late report is recorded, but an order in it does not make the order known."""
    replaced(stack, tasks, "mark_order_known", lambda *_: None)


@mutant
def rest_lease_cannot_have_clicked(stack: ExitStack) -> None:
    """A lease over REST, which needs no permit, counts as one under which nothing can have been ordered."""

    def permitted(lease: Any) -> bool:
        return lease.via is not Via.REST and lease.permit_expires_us is not None

    replaced(stack, gateway.orders.permit, "may_have_clicked", permitted)


@mutant
def restored_without_a_mark(stack: ExitStack) -> None:
    """After a restore the open tasks are not marked as possibly ordered."""
    replaced(stack, gateway.restore, "mark_restored", lambda *_: 0)


def _never_alerting(stack: ExitStack, silent: AlertKind) -> None:
    """No event of a task raises alerts of this kind."""
    raised = gateway.orders.transition_alerts._raised

    def mutated(*args: Any) -> Any:
        alert = raised(*args)
        return None if alert is None or alert[0] is silent else alert

    replaced(stack, gateway.orders.transition_alerts, "_raised", mutated)
