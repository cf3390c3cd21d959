"""What the auditor writes down while it watches, and the few numbers of docs/specification.md that its rules need."""

import copy
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from common.target import Target
from sandbox_shop.orders import Order
from tests.simulation.budgets import Ledger
from tests.simulation.conditions import Conditions
from tests.simulation.gateway_machine import POLICY
from tests.simulation.layout import Layout
from tests.simulation.shop import SimShop
from tests.simulation.trace import Trace
from tests.simulation.worker_machine import WorkerMachine

TTL = POLICY.lease_ttl.total_seconds()
ACKNOWLEDGE = POLICY.acknowledge_within.total_seconds()
PERMIT_TTL = POLICY.permit_ttl.total_seconds()
SETTLE = POLICY.permit_settle.total_seconds()
MARGIN = min(10.0, TTL / 10)
"""The end of a lease in which nothing is begun on the site: what is begun there could arrive after it."""
TICK = 0.001
"""Seconds by which two ways to count may differ."""
PLACED = ("ordered", "awaiting_payment", "paid", "shipped", "delivered", "cancelled")


@dataclass
class LeaseSeen:
    """A lease as the auditor saw it come and go; times in virtual seconds. `in_doubt`: another task may then have had
    an order whose number nobody had told. `told_as_placed`: the task was known to be ordered when it began.
    """

    number: int
    began: float
    deadline: float
    token: str = ""
    journal_id: str | None = None
    over_rest: bool = False
    acknowledged: bool = False
    acknowledged_at: float = 0.0
    permit_until: float | None = None
    ended: float | None = None
    ended_by: str = ""
    in_doubt: bool = False
    told_as_placed: bool = False
    writers: set[str] = field(default_factory=set)
    given_at: str = ""
    permitted_at: str = ""
    """At which gateway it was given, and permitted."""

    @property
    def may_have_clicked(self) -> bool:
        """True if a click was allowed under it: it was permitted, or came over REST, where nobody asks."""
        return self.over_rest or self.permit_until is not None


@dataclass
class ApprovalSeen:
    """What somebody agreed to last."""

    by: str
    total_yen: int
    until: datetime
    used: bool = False


@dataclass
class TaskSeen:
    """A task as the auditor knows it."""

    status: str | None = None
    leases: list[LeaseSeen] = field(default_factory=list)
    told_as_placed: bool = False
    told_in_time: bool = False
    """An accepted report says that it is placed, so whoever takes it next is told so."""
    told_number: bool = False
    let_go_by_person: bool = False
    cancelled_before_any_click: bool = False
    """A cancel request was taken, when nobody had been allowed to click under any lease."""
    cancel_requested: bool = False
    filed_by: str = ""
    approval: ApprovalSeen | None = None
    sequences: set[tuple[str, int]] = field(default_factory=set)
    newest: tuple[int, int] = (0, 0)
    newest_state: str | None = None

    @property
    def lease(self) -> LeaseSeen:
        return self.leases[-1]

    @property
    def may_be_ordered(self) -> bool:
        """True if somebody was allowed to click, or told of an order."""
        return self.told_as_placed or any(lease.may_have_clicked for lease in self.leases)


@dataclass(frozen=True)
class Event:
    """What the history says happened. `at`: when the operation was run, in virtual seconds."""

    database: sqlite3.Connection
    task_id: str
    task: TaskSeen
    row: sqlite3.Row
    details: Mapping[str, Any]
    at: float


@dataclass(frozen=True)
class Look:
    """A worker's look at the order list, under a lease (its token). `own`: what the list showed of the task's own
    orders from its beginning; `others`: how many other orders with one of its items it showed by its end;
    `unexplained`: those of them that the worker's journal does not know as another task's.
    """

    token: str
    began: float
    read: bool
    covered: bool
    own: tuple[str, ...] = ()
    others: int = 0
    unexplained: int = 0


class Books:
    """All of it. `wished`: tasks that a person asked to reclaim; `by_hand`: tasks ordered by somebody else's worker."""

    def __init__(self, now: Callable[[], float], trace: Trace) -> None:
        self.now = now
        self.trace = trace
        self.tasks: dict[str, TaskSeen] = {}
        self.forgotten_leases: dict[str, list[LeaseSeen]] = {}
        """Leases that the gateway has forgotten with a restore; their holders do not know it yet."""
        self.forgotten_reports: set[tuple[str, str, int]] = set()
        self.intents: dict[str, dict[str, Any]] = {}
        self.conditions: dict[str, Conditions] = {}
        self.ledger = Ledger()
        self.approved_yen: dict[str, int] = {}
        """The most that an approval allowed of which a permit made use, whatever the gateway has forgotten since."""
        self.denied: set[str] = set()
        self.targets: dict[str, Target] = {}
        """With which account of which site each task is to be ordered."""
        self.layout: Layout
        self.shops: Mapping[Target, SimShop] = {}
        self.orders: dict[str, list[Order]] = {}
        self.forgotten_orders: set[str] = set()
        """Tasks that had been ordered when the gateway was put back to before they were filed."""
        self.wished: set[str] = set()
        self.by_hand: set[str] = set()
        self.workers: list[WorkerMachine] = []
        self.accepted_submits: set[str] = set()
        self.violations: list[str] = []
        self.only_orders = False
        """True in a world where a lock does not hold: no promise is left but that nothing is ordered or paid twice."""
        self.paused = False
        self.gateway_rebooted_at = -1.0
        self.gateway_set_back = 0.0
        """By how much the gateway's wall clock was set back: after a reboot it has nothing else to count by."""
        self.tokens_of_reports: dict[tuple[str, str, int], set[str]] = {}
        """(task, state, sequence) of each report that any worker sent, to the tokens it presented."""
        self.permits: dict[str, float] = {}
        """Until when each lease, by its token, has its permit: a gateway put back forgets it, its worker does not."""
        self.looks: dict[str, Look] = {}
        """The last look at the order list under each lease, by its token."""
        self.came: set[str] = set()
        self.undone: set[str] = set()
        """Tokens of leases that have come to a worker, and of those that were taken back because nobody had them."""
        self.last_event = 0
        self.tolerance = TICK
        """By how many seconds the service clock may be wrong."""
        self.gateway = ""
        """Where the operations have run that are judged just now."""
        self.filed_at: dict[str, str] = {}
        self.mirror: dict[tuple[str, str], dict[str, Any]] = {}

    def broken(self, what: str, *, grave: bool = False) -> None:
        """Notes that an invariant is broken. `grave`: it must hold even where a lock does not."""
        if self.only_orders and not grave:
            return
        self.trace("AUDITOR", f"VIOLATION: {what}")
        self.violations.append(what)

    def lease_with(self, task_id: str, token: str | None) -> LeaseSeen | None:
        """The lease of that token, be it forgotten by the gateway or not."""
        task = self.tasks.get(task_id)
        leases = [*(task.leases if task else []), *self.forgotten_leases.get(task_id, [])]
        return next((lease for lease in leases if lease.token == token), None)

    def lease_of(self, worker: WorkerMachine) -> LeaseSeen | None:
        """The lease under which a worker acts."""
        return self.lease_with(worker.current_task, worker.tokens.get(worker.current_task))

    def shop_of(self, task_id: str) -> SimShop:
        """The shop as the task's account sees it; as any, for no task."""
        return self.shops[self.targets.get(task_id, self.layout.targets[0])]

    def has_click(self, task_id: str, worker: WorkerMachine | None = None) -> bool:
        """True if a journal (this worker's, or any) holds a click record of the task, on disk."""
        return any(
            machine.read("SELECT 1 FROM clicks WHERE task_id = ?", task_id)
            for machine in (self.workers if worker is None else [worker])
        )

    def has_doubtful_order(self, task_id: str) -> bool:
        """True if another task of the target may have an order whose number nobody has told the gateway."""
        target = self.targets[task_id]
        others = (task for other, task in self.tasks.items() if other != task_id and self.targets[other] == target)
        return any(task.may_be_ordered and not task.told_number for task in others)

    def back_up(self) -> "Books":
        """What the gateway will know if it is restored to this moment."""
        kept = copy.copy(self)
        kept.tasks, kept.mirror, kept.ledger = copy.deepcopy((self.tasks, self.mirror, self.ledger))
        return kept

    def restore(self, kept: "Books") -> None:
        """The gateway has forgotten what came after `kept`; its workers, the shop and the upstream have not."""
        for task_id, task in self.tasks.items():
            known = kept.tasks.get(task_id, TaskSeen())
            tokens = {lease.token for lease in known.leases}
            for lease in task.leases:
                if lease.token not in tokens:
                    lease.ended_by = lease.ended_by or "restore"
                    self.forgotten_leases.setdefault(task_id, []).append(lease)
            self.forgotten_reports |= {(task_id, *report) for report in task.sequences - known.sequences}
        self.forgotten_orders = {task_id for task_id in self.orders if task_id not in kept.tasks}
        self.tasks, self.mirror, self.last_event = copy.deepcopy((kept.tasks, kept.mirror, kept.last_event))
        self.ledger = copy.deepcopy(kept.ledger)
        self.accepted_submits &= self.tasks.keys()


def settled_at(leases: list[LeaseSeen]) -> float:
    """When a click under one of these leases must show on the site."""
    return max(max(lease.permit_until or 0.0, lease.ended or 0.0) for lease in leases) + SETTLE
