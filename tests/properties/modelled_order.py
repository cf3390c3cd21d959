"""What the order model knows of one task and of one lease."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gateway.domain.states import OrderState, Placement, TaskStatus
from tests.properties.order_terms import SETTLE, Holder, Process

S = TaskStatus
NOBODY = Process("(nobody)", None, "(nobody)")
Age = tuple[int, int]
"""Of a report: the lease's number, then the journal's sequence."""


@dataclass
class Held:
    """A lease. `given` counts the answers that brought it, `streams` those that came in a stream."""

    process: Process
    number: int
    began: int
    deadline: int
    expires_utc: int
    token: str = ""
    given: int = 1
    streams: int = 0
    acknowledged: bool = False
    permit_until: int | None = None
    ended: int | None = None

    @property
    def over_rest(self) -> bool:
        return self.process.session is None and self.process is not NOBODY

    @property
    def may_have_clicked(self) -> bool:
        return self.over_rest or self.permit_until is not None


@dataclass
class Order:
    """A task. `rows`: what is known of each order state, the first reported first; `end`: how the worker ended it.

    `known`: workers told of an order. What a person stated: `resolved` at all, `stated` that there is an order, and the
    rows and the number that nobody else told.
    """

    task_id: str
    site: str
    intent_json: str
    status: TaskStatus = S.QUEUED
    leases: list[Held] = field(default_factory=list)
    rows: dict[OrderState, dict[str, Any]] = field(default_factory=dict)
    ages: dict[OrderState, Age] = field(default_factory=dict)
    latest: OrderState | None = None
    latest_age: Age = (0, 0)
    end: tuple[OrderState, TaskStatus] | None = None
    known: bool = False
    numbers: set[str] = field(default_factory=set)
    resolved: bool = False
    stated: bool = False
    stated_rows: set[OrderState] = field(default_factory=set)
    stated_number: str | None = None
    late: set[Any] = field(default_factory=set)

    @property
    def is_active(self) -> bool:
        return self.status in (S.LEASED, S.RUNNING)

    @property
    def held(self) -> Held:
        return self.leases[-1]

    @property
    def waits_for_acknowledgement(self) -> bool:
        return self.is_active and not self.held.acknowledged

    @property
    def placement(self) -> Placement:
        return Placement.CERTAIN if self.stated else self.placement_by_workers

    @property
    def in_doubt(self) -> bool:
        """Whether there is or may be an order whose number nobody told; a person may have found that there is none."""
        found_none = self.status is S.FAILED and self.resolved and not self.known and not self.stated
        return self.placement is not Placement.IMPOSSIBLE and not self.numbers and not found_none

    @property
    def latest_of_workers(self) -> OrderState | None:
        told = [state for state in self.rows if state not in self.stated_rows]
        return max(told, key=lambda state: (self.ages[state], told.index(state)), default=None)

    @property
    def placement_by_workers(self) -> Placement:
        if self.known:
            return Placement.CERTAIN
        clicked = any(lease.may_have_clicked for lease in self.leases)
        return Placement.POSSIBLE if clicked else Placement.IMPOSSIBLE

    def is_held_by(self, holder: Holder) -> bool:
        """Whether the last lease is this holder's."""
        if not self.leases or self.held.process.worker != holder.worker:
            return False
        return self.held.over_rest if holder.token is None else self.held.token == holder.token

    def settled(self, leases: Iterable[Held]) -> int:
        """When a click under one of these leases would show on the site for certain."""
        return max(max(lease.permit_until or 0, lease.ended or 0) for lease in leases) + SETTLE
