"""Which decisions need a second person, and putting one of them before that person instead of taking it.

The rule: docs/specification.md#a-second-person. A decision is judged by all its other rules first, so what is proposed
could be taken as things stand.
"""

from typing import Any, Final

from gateway.domain.approvals import Consent
from gateway.domain.binding import binding_of
from gateway.domain.health import Pause
from gateway.domain.instant import Instant
from gateway.domain.models import GATEWAY, Actor, AlertKind, Policy, Task
from gateway.domain.operations import Proposal, ProposalStatus, ProposedDecision, Resolution, Resumption
from gateway.domain.proposals import in_words, kind_of, task_of
from gateway.domain.refusals import Reason, Refusal
from gateway.domain.states import Placement, TaskStatus
from gateway.domain.transitions import Event, allows
from gateway.orders.history import record, record_general
from gateway.store import alerts, approvals, pauses, proposals, restores, tasks
from gateway.store.port import ReadTransaction, Transaction

DISPATCH: Final = "dispatch"
"""Subject of the alert about a proposal that concerns no task."""


def resolving_needs_another(policy: Policy, task: Task, outcome: TaskStatus, actor: Actor) -> bool:
    """Tell whether a statement about this task has to be confirmed.

    While an order is possible by what workers told, whatever a person has stated since; and to failed, where it is
    certain by them.
    """
    against = task.placement_by_workers is Placement.CERTAIN and outcome is TaskStatus.FAILED
    return _is_on(policy, actor) and (against or task.placement_by_workers is Placement.POSSIBLE)


def approving_needs_another(policy: Policy, total_yen: int, actor: Actor) -> bool:
    """Tell whether an approval for so much has to be confirmed."""
    return _is_on(policy, actor) and total_yen > policy.second_person_over_yen


def resuming_needs_another(tx: ReadTransaction, policy: Policy, pause: Pause, actor: Actor) -> bool:
    """Tell whether lifting the pause of all sites has to be confirmed: the first time after a restore."""
    return _is_on(policy, actor) and restores.any_since(tx, pause.paused_at)


def _is_on(policy: Policy, actor: Actor) -> bool:
    return policy.second_person and actor.confirmed_by is None


def propose(tx: Transaction, now: Instant, policy: Policy, decision: ProposedDecision, actor: Actor) -> Refusal:
    """Put a decision before another person, and return the refusal that says so; a repeat changes nothing.

    One proposal stands at a time about a task, or about dispatch.
    """
    task = _task(tx, decision)
    if refusal := has_no_name(actor, "proposes", task):
        return refusal
    standing = proposals.standing_about(tx, task_of(decision))
    if standing is not None and (status := lapsed(tx, now, standing)) is not None:
        close(tx, now, standing, status, GATEWAY)
        standing = None
    if standing is None:
        basis = _basis(tx, decision) or ""
        standing = proposals.add(tx, now, decision, basis, actor, now.later(policy.proposal_valid))
        _note(tx, now, standing, "propose", actor, decision.reason)
        kind, subject = _alert(standing)
        said = f"{actor.identity} proposes {in_words(decision)}: {decision.reason}"
        alerts.raise_once(tx, now, kind, subject, f"{said}; {_next(standing)}")
    elif (standing.decision, standing.proposed_by) != (decision, actor.identity):
        return _required(
            standing, f"{standing.proposed_by} has proposed {in_words(standing.decision)}, which has to be dealt with "
            f"first: {_next(standing)}, or withdraws it", task,
        )  # fmt: skip
    return _required(standing, f"{in_words(decision)} needs a second person: {_next(standing)}", task)


def lapsed(tx: ReadTransaction, now: Instant, proposal: Proposal) -> ProposalStatus | None:
    """Return how a proposal that waits has come to nothing by itself; None: it has not."""
    if proposal.has_run_out(now.utc):
        return ProposalStatus.EXPIRED
    return None if _basis(tx, proposal.decision) == proposal.basis else ProposalStatus.OBSOLETE


def waiting_about(tx: ReadTransaction, now: Instant, task_id: str | None) -> Proposal | None:
    """Return the proposal about a task (None: about dispatch) that waits for another person, if there is one."""
    found = proposals.standing_about(tx, task_id)
    return None if found is None or lapsed(tx, now, found) is not None else found


def close(
    tx: Transaction, now: Instant, proposal: Proposal, status: ProposalStatus, actor: Actor, reason: str = ""
) -> None:
    """Let a proposal wait no more. Raises RowCountError unless it waits."""
    proposals.close(tx, now, proposal.proposal_id, status, actor, reason)
    _note(tx, now, proposal, f"proposal_{status}", actor, reason)
    alerts.clear(tx, now, *_alert(proposal))


def has_no_name(actor: Actor, does: str, task: Task | None) -> Refusal | None:
    """Refuse a token without a name, of which nobody knows whose it is."""
    if binding_of(actor.identity) is not None:
        return None
    why = f"this token ({actor.identity}) has no name, so nobody knows who {does}; give it one (name=secret)"
    return Refusal(Reason.PERMISSION_DENIED, why, current_status=None if task is None else task.status)


def _basis(tx: ReadTransaction, decision: ProposedDecision) -> str | None:
    """Return what tells whether that on which a decision rests has changed; None: there is nothing to decide any more.

    A statement rests on all that is known of the task, an approval on those before it, a resumption on the pause.
    """
    match decision:
        case Resolution():
            return tasks.get(tx, decision.task_id).updated_at
        case Consent():
            task, latest = tasks.get(tx, decision.task_id), approvals.latest(tx, decision.task_id)
            if not allows(Event.APPROVE, task):
                return None
            return "0" if latest is None else str(latest.number)
        case Resumption():
            pause = pauses.of_all_sites(tx)
            return None if pause is None else pause.paused_at


def _required(standing: Proposal, message: str, task: Task | None) -> Refusal:
    return Refusal(
        Reason.SECOND_PERSON_REQUIRED,
        message,
        current_status=None if task is None else task.status,
        proposal_id=standing.proposal_id,
    )


def _next(proposal: Proposal) -> str:
    number = proposal.proposal_id
    return (
        f"somebody else than {proposal.proposed_by} confirms proposal {number} until {proposal.valid_until} "
        f"(`order-gateway proposals confirm {number}`)"
    )


def _alert(proposal: Proposal) -> tuple[AlertKind, str]:
    task_id = task_of(proposal.decision)
    return (AlertKind.RESUME_PROPOSED, DISPATCH) if task_id is None else (AlertKind.PROPOSAL_WAITING, task_id)


def _note(tx: Transaction, now: Instant, proposal: Proposal, kind: str, actor: Actor, reason: str) -> None:
    task = _task(tx, proposal.decision)
    told: dict[str, Any] = {"proposal_id": proposal.proposal_id, "decision": kind_of(proposal.decision)}
    if task is None:
        record_general(tx, now, kind, actor, reason=reason, **told)
    else:
        record(tx, now, task, kind, actor, reason=reason, **told, what=in_words(proposal.decision))


def _task(tx: ReadTransaction, decision: ProposedDecision) -> Task | None:
    task_id = task_of(decision)
    return None if task_id is None else tasks.get(tx, task_id)
