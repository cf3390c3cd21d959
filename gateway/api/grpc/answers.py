"""How servicers hand a use case's result on."""

from typing import TypeVar

from gateway.domain.refusals import Refusal, RefusedError

T = TypeVar("T")


def accepted(outcome: T | Refusal) -> T:
    """Return the result, or raise the refusal, which `guard` tells the caller."""
    if isinstance(outcome, Refusal):
        raise RefusedError(outcome)
    return outcome
