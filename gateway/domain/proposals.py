"""How a decision that waits for a second person is told, and kept (docs/specification.md#a-second-person)."""

import json
from datetime import timedelta

from gateway.domain.approvals import Consent
from gateway.domain.instant import microseconds
from gateway.domain.json_writing import dump
from gateway.domain.operations import ProposedDecision, Resolution, Resumption
from gateway.domain.states import OrderState, TaskStatus


def task_of(decision: ProposedDecision) -> str | None:
    """Return the task that a decision is about; None: dispatch."""
    return None if isinstance(decision, Resumption) else decision.task_id


def in_words(decision: ProposedDecision) -> str:
    """Say to a person what is proposed."""
    match decision:
        case Resolution():
            told = [f" as {decision.state}" if decision.state else ""]
            told += [f", order number {decision.site_order_id}" if decision.site_order_id else ""]
            told += [", although an order is impossible" if decision.although_impossible else ""]
            return f"to resolve task {decision.task_id} to {decision.outcome}{''.join(told)}"
        case Consent():
            return f"to approve task {decision.task_id} for at most {decision.max_total_yen:,} yen"
        case Resumption():
            return "to resume dispatch"


def written(decision: ProposedDecision) -> str:
    """Return what a decision says beside its task and its reason, as JSON text."""
    match decision:
        case Resolution():
            return dump(
                {
                    "outcome": decision.outcome,
                    "state": decision.state,
                    "site_order_id": decision.site_order_id,
                    "although_impossible": decision.although_impossible,
                }
            )
        case Consent():
            valid_us = None if decision.valid_for is None else microseconds(decision.valid_for)
            return dump({"max_total_yen": decision.max_total_yen, "valid_us": valid_us})
        case Resumption():
            return dump({})


def read(kind: str, task_id: str | None, reason: str, written_as: str) -> ProposedDecision:
    """Return the decision that `written` wrote down."""
    told = json.loads(written_as)
    if kind == "resume" or task_id is None:
        return Resumption(reason)
    if kind == "approve":
        valid_for = None if told["valid_us"] is None else timedelta(microseconds=told["valid_us"])
        return Consent(task_id, reason, told["max_total_yen"], valid_for)
    state = None if told["state"] is None else OrderState(told["state"])
    return Resolution(
        task_id, reason, TaskStatus(told["outcome"]), state, told["site_order_id"], told["although_impossible"]
    )


def kind_of(decision: ProposedDecision) -> str:
    """Return how a decision is called, as the history does."""
    return {Resolution: "resolve", Consent: "approve", Resumption: "resume"}[type(decision)]
