"""Decisions that one person has proposed and another has to confirm, and what became of each; none is ever deleted."""

from gateway.domain.instant import Instant
from gateway.domain.models import Actor
from gateway.domain.operations import Proposal, ProposalStatus, ProposedDecision
from gateway.domain.proposals import kind_of, read, task_of, written
from gateway.store.port import ReadTransaction, Row, RowCountError, Transaction


def add(
    tx: Transaction, now: Instant, decision: ProposedDecision, basis: str, actor: Actor, valid_until: str
) -> Proposal:
    """Write down a proposal. Nothing may wait about the same task, or about dispatch."""
    row = tx.one(
        "proposal_add",
        kind=kind_of(decision),
        task_id=task_of(decision),
        decision_json=written(decision),
        reason=decision.reason,
        basis=basis,
        by=actor.identity,
        at=now.utc,
        valid_until=valid_until,
    )
    if row is None:
        raise RowCountError("proposal_add")
    return _proposal(row)


def find(tx: ReadTransaction, proposal_id: int) -> Proposal | None:
    """Return a proposal, or None."""
    row = tx.one("proposal_get", proposal_id=proposal_id)
    return None if row is None else _proposal(row)


def standing_about(tx: ReadTransaction, task_id: str | None) -> Proposal | None:
    """Return what was proposed about a task (None: about dispatch) and not closed."""
    if task_id is None:
        row = tx.one("proposal_waiting_about_dispatch")
    else:
        row = tx.one("proposal_waiting_about_task", task_id=task_id)
    return None if row is None else _proposal(row)


def newest(tx: ReadTransaction, *, closed_too: bool, below: int, count: int) -> list[Proposal]:
    """Return up to `count` proposals with numbers smaller than `below`, newest first."""
    if closed_too:
        rows = tx.all("proposals_newest", below=below, count=count)
    else:
        rows = tx.all("proposals_waiting", below=below, count=count)
    return [_proposal(row) for row in rows]


def perhaps_lapsed(tx: ReadTransaction, now: Instant, count: int) -> list[Proposal]:
    """Return up to `count` proposals that wait and may have lapsed, the oldest first; each that has is among them."""
    return [_proposal(row) for row in tx.all("proposals_perhaps_lapsed", at=now.utc, count=count)]


def close(tx: Transaction, now: Instant, proposal_id: int, status: ProposalStatus, actor: Actor, reason: str) -> None:
    """Write down what became of a proposal. Raises RowCountError unless it waits."""
    tx.change_one(
        "proposal_close", proposal_id=proposal_id, status=status, by=actor.identity, at=now.utc, reason=reason
    )


def _proposal(row: Row) -> Proposal:
    return Proposal(
        proposal_id=row["proposal_id"],
        decision=read(row["kind"], row["task_id"], row["reason"], row["decision_json"]),
        basis=row["basis"],
        proposed_by=row["proposed_by"],
        proposed_at=row["proposed_at"],
        valid_until=row["valid_until"],
        status=ProposalStatus(row["status"]),
        closed_by=row["closed_by"],
        closed_at=row["closed_at"],
        closed_reason=row["closed_reason"],
    )
