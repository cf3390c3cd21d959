"""Proposals of risky decisions: looking at them, confirming one as a second person, withdrawing one.

The rule: docs/specification.md#a-second-person. Confirming takes the decision by its own use case, in the name of who
proposed it, and so by all of its rules once more.
"""

from dataclasses import dataclass, replace
from typing import Final

from gateway.domain.approvals import Consent
from gateway.domain.instant import Instant
from gateway.domain.models import GATEWAY, Actor, Policy
from gateway.domain.operations import Proposal, ProposalStatus, Resolution, Resumption
from gateway.domain.paging import Page
from gateway.domain.proposals import in_words, task_of
from gateway.domain.refusals import Reason, Refusal
from gateway.operations.actions import resolve
from gateway.operations.approvals import approve, is_nobody_else
from gateway.operations.pause import resume
from gateway.operations.second_person import close, has_no_name, lapsed
from gateway.orders.history import record_general, record_refusal, refusal_details
from gateway.store import proposals, tasks
from gateway.store.port import ABOVE_ALL_ROWS, ReadTransaction, Transaction

_LAPSED_AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class Confirmed:
    """A proposal whose decision was taken. `repeated`: by this very person before, and nothing has changed."""

    proposal: Proposal
    repeated: bool


def list_proposals(
    tx: ReadTransaction, now: Instant, closed_too: bool, below: int | None, count: int
) -> Page[Proposal, int]:
    """Return up to `count` proposals with numbers smaller than `below` (None: from the newest), newest first."""
    end = ABOVE_ALL_ROWS if below is None else below
    found = proposals.newest(tx, closed_too=closed_too, below=end, count=count + 1)
    shown = tuple(_as_it_stands(tx, now, proposal) for proposal in found[:count])
    if not closed_too:
        shown = tuple(proposal for proposal in shown if proposal.status is ProposalStatus.WAITING)
    return Page(shown, found[count - 1].proposal_id if len(found) > count else None)


def confirm(
    tx: Transaction, now: Instant, policy: Policy, proposal_id: int, reason: str, actor: Actor
) -> Confirmed | Refusal:
    """Take the decision that somebody else has proposed; what has changed since it was proposed is left as it is."""
    proposal = proposals.find(tx, proposal_id)
    if proposal is None:
        return _not_found(proposal_id)
    if proposal.status is ProposalStatus.CONFIRMED and proposal.closed_by == actor.identity:
        return Confirmed(proposal, repeated=True)
    if refusal := _not_waiting(tx, now, proposal) or _not_by(tx, proposal, actor):
        return _refused(tx, now, proposal, actor, refusal)
    taken = _take(tx, now, policy, proposal, Actor(proposal.proposed_by, confirmed_by=actor.identity))
    if isinstance(taken, Refusal):
        return taken
    close(tx, now, proposal, ProposalStatus.CONFIRMED, actor, reason)
    return Confirmed(_closed(tx, proposal), repeated=False)


def withdraw_proposal(tx: Transaction, now: Instant, proposal_id: int, reason: str, actor: Actor) -> Proposal | Refusal:
    """Let a proposal wait no more, one's own or another's; nothing is decided. A repeat changes nothing."""
    proposal = proposals.find(tx, proposal_id)
    if proposal is None:
        return _not_found(proposal_id)
    if proposal.status is ProposalStatus.WITHDRAWN and proposal.closed_by == actor.identity:
        return proposal
    if refusal := _not_waiting(tx, now, proposal):
        return refusal
    close(tx, now, proposal, ProposalStatus.WITHDRAWN, actor, reason)
    return _closed(tx, proposal)


def close_lapsed(tx: Transaction, now: Instant) -> int:
    """Close what nobody confirmed in time, and what has changed since; return how many proposals."""
    waiting = proposals.perhaps_lapsed(tx, now, _LAPSED_AT_ONCE)
    gone = [(proposal, status) for proposal in waiting if (status := lapsed(tx, now, proposal)) is not None]
    for proposal, status in gone:
        close(tx, now, proposal, status, GATEWAY)
    return len(gone)


def _take(tx: Transaction, now: Instant, policy: Policy, proposal: Proposal, decider: Actor) -> object:
    match proposal.decision:
        case Resolution() as told:
            return resolve(tx, now, policy, told, decider)
        case Consent() as consent:
            return approve(tx, now, policy, consent, decider)
        case Resumption(reason):
            return resume(tx, now, policy, "", reason, decider)


def _not_waiting(tx: Transaction, now: Instant, proposal: Proposal) -> Refusal | None:
    """Refuse what is closed; what has lapsed is closed now."""
    if proposal.status is ProposalStatus.WAITING and (status := lapsed(tx, now, proposal)) is not None:
        close(tx, now, proposal, status, GATEWAY)
        proposal = _closed(tx, proposal)
    number = proposal.proposal_id
    match proposal.status:
        case ProposalStatus.WAITING:
            return None
        case ProposalStatus.EXPIRED:
            why = f"proposal {number} has expired, at {proposal.valid_until}: propose it anew"
        case ProposalStatus.OBSOLETE:
            why = f"what proposal {number} is about has changed since: look again, and propose it anew"
        case closed:
            why = f"proposal {number} was {closed} by {proposal.closed_by} at {proposal.closed_at}"
    return Refusal(Reason.STATUS_CONFLICT, why)


def _not_by(tx: ReadTransaction, proposal: Proposal, actor: Actor) -> Refusal | None:
    """Refuse who proposed it, a token without a name and, for an approval, who filed the task."""
    task_id = task_of(proposal.decision)
    task = None if task_id is None else tasks.get(tx, task_id)
    if actor.identity == proposal.proposed_by:
        why = (
            f"{actor.identity} proposed {in_words(proposal.decision)}; somebody else has to confirm it, or withdraw it"
        )
        return Refusal(Reason.PERMISSION_DENIED, why)
    if task is not None and isinstance(proposal.decision, Consent):
        return is_nobody_else(task, actor)
    return has_no_name(actor, "confirms", task)


def _refused(tx: Transaction, now: Instant, proposal: Proposal, actor: Actor, refusal: Refusal) -> Refusal:
    """Keep in the history that somebody tried."""
    task_id = task_of(proposal.decision)
    told = {"proposal_id": proposal.proposal_id}
    if task_id is None:
        details = refusal_details(refusal, actor, **told)
        record_general(tx, now, "confirm_refused", actor, reason=refusal.message, **details)
    else:
        record_refusal(tx, now, tasks.get(tx, task_id), "confirm_refused", actor, refusal, **told)
    return refusal


def _as_it_stands(tx: ReadTransaction, now: Instant, proposal: Proposal) -> Proposal:
    """Return a proposal with how it has lapsed, also where nobody has closed it yet."""
    if proposal.status is not ProposalStatus.WAITING:
        return proposal
    return replace(proposal, status=lapsed(tx, now, proposal) or ProposalStatus.WAITING)


def _closed(tx: ReadTransaction, proposal: Proposal) -> Proposal:
    return proposals.find(tx, proposal.proposal_id) or proposal


def _not_found(proposal_id: int) -> Refusal:
    return Refusal(Reason.PROPOSAL_NOT_FOUND, f"there is no proposal {proposal_id}")
