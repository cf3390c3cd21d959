"""What happened, in order: what the worker asked of the gateway about a task, and of the shop meanwhile."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ordergateway.v1 import order_leases_pb2 as pb

WRITES = frozenset({"cart_add", "cart_remove", "submit", "pay", "challenge_answer"})
"""Steps of the shop that change something there."""


class Outcome(StrEnum):
    """What the worker got for a call."""

    LOST = "lost"
    ANSWERED = "answered"
    REFUSED = "refused"


@dataclass(slots=True)
class Call:
    """A call of the worker. `at` and `ended_at` are when it came and was answered, in seconds of the loop's clock."""

    at: float
    method: str
    request: Any
    outcome: Outcome = Outcome.LOST
    reason: int = 0
    recorded_late: bool = False
    ended_at: float | None = None
    answer: Any = None


@dataclass(frozen=True, slots=True)
class Visit:
    """A request to the shop: when it came, and its step (`sandbox_shop.faults.STEPS`)."""

    at: float
    step: str


@dataclass(slots=True)
class Story:
    """One task, from its first lease on: calls that name it, and visits to the shop until the next is handed out."""

    leases: list[pb.Lease] = field(default_factory=list)
    handed_at: list[float] = field(default_factory=list)
    events: list[Call | Visit] = field(default_factory=list)

    def calls(self, method: str, *outcomes: Outcome) -> list[Call]:
        """Return the calls of a method; only those with these outcomes, if any are named."""
        return [
            event
            for event in self.events
            if isinstance(event, Call) and event.method == method and (not outcomes or event.outcome in outcomes)
        ]

    def visits(self, *steps: str) -> list[Visit]:
        """Return the visits of these steps."""
        return [event for event in self.events if isinstance(event, Visit) and event.step in steps]

    @property
    def end(self) -> pb.ReportOrderRequest | None:
        """The report that ended the task; None while none was answered."""
        taken = (Outcome.ANSWERED,)
        return next((call.request for call in self.calls("ReportOrder", *taken) if call.request.terminal), None)
