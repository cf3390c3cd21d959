"""Misbehaviour on command: which step goes wrong, how, before or after it took effect, and how often."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

STEPS = (
    "home",
    "item",
    "login_page",
    "login",
    "account",
    "cart",
    "cart_add",
    "cart_remove",
    "confirm",
    "submit",
    "thanks",
    "payment_page",
    "pay",
    "payment_result",
    "challenge",
    "challenge_answer",
    "order_list",
    "order_detail",
    "item_detail",
)
"""Every step a fault can name: each route of the shop is one."""

MAX_ARMED = 100
MAX_SECONDS = 3600.0


class FaultKind(StrEnum):
    """How a step goes wrong."""

    SLOW = "slow"  # answers after `seconds`
    ERROR = "error"  # answers 500
    RESET = "reset"  # the connection is reset (RST), no answer
    LOST = "lost"  # the connection is closed (FIN), no answer
    HANG = "hang"  # no answer, the connection stays open
    LOGGED_OUT = "logged_out"  # the account's session ends as the request arrives
    REDESIGN = "redesign"  # the page lacks the blocks named in `blocks`


@dataclass(slots=True)
class Fault:
    """One armed fault. `after`: it strikes once the step has taken effect, so an order exists though no answer came.

    `remaining` is how many more requests of the step it strikes; None: every one until cleared.
    """

    kind: FaultKind
    step: str
    after: bool = False
    remaining: int | None = 1
    seconds: float = 1.0
    blocks: frozenset[str] = frozenset({"main"})

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Fault":
        """Read `{"kind", "step", "after", "count", "seconds", "blocks"}`. Raises ValueError that names the field."""
        step = body.get("step")
        if step not in STEPS:
            raise ValueError(f"step must be one of {', '.join(STEPS)}")
        count = body.get("count", 1)
        if count is not None and (type(count) is not int or count < 1):
            raise ValueError("count must be a whole number of at least 1, or null for every request")
        seconds = body.get("seconds", 1.0)
        if type(seconds) not in (int, float) or not 0 <= seconds <= MAX_SECONDS:
            raise ValueError(f"seconds must be a number from 0 to {MAX_SECONDS:.0f}")
        blocks = body.get("blocks", ["main"])
        if not isinstance(blocks, list) or not all(isinstance(block, str) for block in blocks):
            raise ValueError("blocks must be a list of block names")
        try:
            kind = FaultKind(str(body.get("kind")))
        except ValueError:
            raise ValueError(f"kind must be one of {', '.join(FaultKind)}") from None
        return cls(kind, step, bool(body.get("after", False)), count, float(seconds), frozenset(blocks))

    def to_json(self) -> dict[str, Any]:
        """Return the fault as the control API shows it."""
        return {
            "kind": self.kind.value,
            "step": self.step,
            "after": self.after,
            "count": self.remaining,
            "seconds": self.seconds,
            "blocks": sorted(self.blocks),
        }


class FaultPlan:
    """The armed faults, in the order in which they were armed. One request meets at most one."""

    def __init__(self) -> None:
        self._armed: list[Fault] = []

    def arm(self, fault: Fault) -> None:
        """Add a fault. Raises ValueError where too many are armed already."""
        if len(self._armed) >= MAX_ARMED:
            raise ValueError(f"at most {MAX_ARMED} faults can be armed")
        self._armed.append(fault)

    def clear(self) -> None:
        """Disarm everything."""
        self._armed.clear()

    def armed(self) -> list[Fault]:
        """Return what is armed."""
        return list(self._armed)

    def take(self, step: str) -> Fault | None:
        """Return the fault that a request of this step meets, used up by one."""
        fault = next((fault for fault in self._armed if fault.step == step), None)
        if fault is not None and fault.remaining is not None:
            fault.remaining -= 1
            if fault.remaining == 0:
                self._armed.remove(fault)
        return fault
