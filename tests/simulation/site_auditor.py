"""Judges what a worker does on the site, and what it says it saw there, at every step.

None of the rules here is taken from the code under test; each is a sentence of docs/specification.md, written
down again.
"""

from collections import Counter
from typing import Any

from ordergateway.v1 import order_leases_pb2, orders_pb2

from common.target import Target
from sandbox_shop.orders import Order
from tests.simulation.approval_auditor import ApprovalAuditor
from tests.simulation.books import MARGIN, Books, Look
from tests.simulation.budget_auditor import BudgetAuditor
from tests.simulation.condition_auditor import ConditionAuditor
from tests.simulation.layout import SITE
from tests.simulation.worker_machine import POLICY, STOP_SECONDS, WorkerMachine

ONLY = Target(SITE)
NOT_ORDERED = order_leases_pb2.Verification.VERDICT_NOT_ORDERED


class SiteAuditor:
    """Sees the shop, and every worker's every step."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._conditions = ConditionAuditor(books)
        self._approvals = ApprovalAuditor(books)
        self._budgets = BudgetAuditor(books)
        self._refused_at: dict[str, float] = {}
        self._known_before: set[str] = set()

    # What goes between a worker and the gateway

    def requested(self, worker: WorkerMachine, path: str, request: Any) -> None:
        """A worker sends a request."""
        method = path.rpartition("/")[2]
        if method == "RenewLease" and request.lease_token in self._known_before:
            self._books.broken(f"{request.task_id}: {worker.name} works under a lease that it had before")
        elif method == "ReportOrder":
            self.reported(request)
        elif method == "RequestSubmitPermit" and request.verification.verdict == NOT_ORDERED:
            self._books.trace.count("not_ordered verdicts")
            look = self._books.looks.get(request.lease_token)
            if look is None or not look.read or not look.covered:
                self._books.broken(f"{request.task_id}: {worker.name} says not ordered, but has not read the list")
            elif look.own:
                self._books.broken(f"{request.task_id}: {worker.name} says not ordered, the list showed {look.own[0]}")

    def reported(self, request: Any) -> None:
        """Somebody sends a report."""
        state = orders_pb2.OrderState.Name(request.state).removeprefix("ORDER_STATE_").lower()
        tokens = self._books.tokens_of_reports.setdefault((request.task_id, state, request.sequence), set())
        tokens.add(request.lease_token)

    def answered(self, worker: WorkerMachine, path: str, request: Any, answer: Any, sent: float) -> None:
        """A worker got a good answer: only the token of a lease that lived then gets one."""
        method = path.rpartition("/")[2]
        if method == "ReclaimOrder":
            self.lease_came(worker, answer.lease)
        if method not in ("RenewLease", "RequestSubmitPermit"):
            return
        lease = self._books.lease_with(request.task_id, request.lease_token)
        if lease is None or (lease.ended is not None and lease.ended < sent):
            self._books.broken(f"{request.task_id}: {method} was granted to the token of a lease that had ended")

    def refused(self, worker: WorkerMachine, path: str, request: Any) -> None:
        """A worker got no for an answer."""
        if path.endswith("/ReclaimOrder") and self._books.targets[request.task_id] not in worker.serves.targets:
            self._books.trace.count("reclaims for other accounts refused")
        if path.endswith("/RequestSubmitPermit"):
            self._refused_at[request.lease_token] = self._books.now()

    def lease_came(self, worker: WorkerMachine, lease: Any) -> None:
        """A lease has come to a worker: of a target that it serves; again, if its journal has it."""
        self._books.came.add(lease.lease_token)
        target = self._books.targets[lease.task_id]
        if target not in worker.serves.targets:
            self._books.broken(f"{lease.task_id}: {worker.name} gets an order of {target}, which it does not serve")
        if target != (lease.site, lease.account):
            self._books.broken(f"{lease.task_id}: {worker.name} is told {lease.site}/{lease.account} for {target}")
        if lease.lease_token in self._books.undone:
            self._books.broken(f"{lease.task_id}: {worker.name} gets a lease that was undone")
        if worker.read("SELECT 1 FROM leases WHERE lease_token = ?", lease.lease_token):
            self._known_before.add(lease.lease_token)
            self._books.trace.count("leases that came twice")
        if worker.read("SELECT 1 FROM orders WHERE task_id = ? AND status <> 'open'", lease.task_id):
            self._books.trace.count("ended tasks offered again")

    # On the site

    def write_begins(self, worker: WorkerMachine, what: str, session: Target) -> None:
        """A worker may only write to the site under a lease that lives, and as the task's account."""
        broken, now = self._books.broken, self._books.now()
        task_id = worker.current_task
        if session != self._books.targets[task_id]:
            broken(f"{task_id}: {what} by {worker.name} as {session}, it is for {self._books.targets[task_id]}")
        lease = self._books.lease_of(worker)
        if lease is None:
            broken(f"{task_id}: {what} by {worker.name} without a lease")
            return
        if what == "add_to_cart":
            self._begins_to_order(worker, task_id)
        if lease.journal_id != worker.journal_id:
            broken(f"{task_id}: {worker.name} acts under a lease of another journal")
        lease.writers.add(worker.name)
        if len(lease.writers) > 1:
            broken(f"{task_id}: {' and '.join(sorted(lease.writers))} act under one lease")
        if worker.process is not None and worker.process.thawed_at == now:
            return  # frozen between its last look at the clock and this step
        if not lease.acknowledged:
            broken(f"{task_id}: {what} by {worker.name} under a lease that is not acknowledged")
            return
        if lease.deadline - MARGIN <= now < lease.deadline:
            broken(f"{task_id}: {what} by {worker.name} {lease.deadline - now:.1f} s before the end of its lease")
        if lease.ended_by in ("expire_now", "restart", "restore") and now < lease.deadline:
            return  # nobody could tell the worker in time
        if lease.ended_by == "finish":
            broken(f"{task_id}: {what} by {worker.name} after the task had ended")
            return
        if now >= lease.deadline:
            broken(f"{task_id}: {what} by {worker.name} {now - lease.deadline:.1f} s after its lease")

    def _begins_to_order(self, worker: WorkerMachine, task_id: str) -> None:
        """What must be so before a worker puts the first item into the cart, and before each further one."""
        broken = self._books.broken
        lease = self._books.lease_of(worker)
        assert lease is not None
        if worker.read("SELECT 1 FROM clicks WHERE task_id = ?", task_id):
            broken(f"{task_id}: {worker.name} orders what its journal has clicked")
        if worker.read("SELECT 1 FROM orders WHERE task_id = ? AND status <> 'open'", task_id):
            broken(f"{task_id}: {worker.name} orders what its journal has ended")
        if lease.told_as_placed:
            broken(f"{task_id}: {worker.name} orders what was reported as ordered")
        known = worker.read("SELECT 1 FROM leases WHERE task_id = ? AND lease_token <> ?", task_id, lease.token)
        if (known or lease.number > 1) and lease.token not in self._books.looks:
            broken(f"{task_id}: {worker.name} orders what was leased before without a verification")
        left = [since for since in self._books.shop_of(task_id).in_cart_since if since < lease.acknowledged_at]
        if left:
            broken(f"{task_id}: {worker.name} fills a cart with things in it that are older than its lease")

    def submit_begins(self, worker: WorkerMachine, opened_at: float, session: Target) -> None:
        """The click, in the session of an account. `opened_at`: when the page was opened that is confirmed by it."""
        broken, now, task_id = self._books.broken, self._books.now(), worker.current_task
        self._books.trace(worker.name, f"{task_id}: CLICKS")
        self._books.trace.count("clicks")
        self.write_begins(worker, "submit", session)
        if not self._books.has_click(task_id, worker):
            broken(f"{task_id}: {worker.name} clicks without a click record")
        lease = self._books.lease_of(worker)
        permit_until = None if lease is None else self._books.permits.get(lease.token)
        if permit_until is None:
            broken(f"{task_id}: {worker.name} clicks without a permit")
        elif now >= permit_until:
            broken(f"{task_id}: {worker.name} clicks {now - permit_until:.1f} s after its permit")
        if lease is not None and opened_at < self._refused_at.get(lease.token, -1.0):
            broken(f"{task_id}: {worker.name} clicks on a page that is older than its wait for the permit")

    def submit_broken_off(self, worker: WorkerMachine, began: float) -> None:
        """The click is followed to its end, as long as a step may take and the process may live."""
        now = self._books.now()
        in_time = now < began + POLICY.step_seconds - 0.001
        if in_time and not (worker.stopped_at is not None and now >= worker.stopped_at + STOP_SECONDS - 0.001):
            self._books.broken(f"{worker.current_task}: {worker.name} breaks off its click after {now - began:.1f} s")

    def placed(self, worker_name: str, task_id: str, order: Order, session: Target = ONLY) -> None:
        """The shop has taken an order for this task, in the session of an account."""
        self._books.trace(
            "shop", f"takes order {order.number} for {task_id} of {worker_name}, {order.quote.payable_yen} yen"
        )
        self._books.trace.count("orders placed")
        if session.account:
            self._books.trace.count("orders with a named account")
        if session.site != SITE:
            self._books.trace.count("orders on a second site")
        broken = self._books.broken
        orders = self._books.orders.setdefault(task_id, [])
        orders.append(order)
        if len(orders) > 1:
            self._books.trace.count("duplicates")
            broken(f"{task_id}: ORDERED {len(orders)} TIMES", grave=True)
        if session != self._books.targets[task_id]:
            broken(f"{task_id}: ordered with {session}, wanted {self._books.targets[task_id]}")
        if task_id not in self._books.by_hand:
            self._conditions.placed(task_id, order)
            self._approvals.placed(task_id, order)
            self._budgets.placed(task_id, order)
        intent = self._books.intents[task_id]
        wanted: Counter[tuple[str, str | None]] = Counter()
        for item in intent["items"]:
            wanted[code_of(item["item_url"]), item.get("variant_id")] += item["quantity"]
        got: Counter[tuple[str, str | None]] = Counter()
        for line in order.quote.lines:
            got[line.code, line.variant_id] += line.quantity
        if got != wanted:
            broken(f"{task_id}: ordered {dict(got)}, wanted {dict(wanted)}")
        if order.quote.payable_yen > intent["max_total_yen"]:
            broken(f"{task_id}: ordered for {order.quote.payable_yen} yen, allowed were {intent['max_total_yen']}")

    def pay_begins(self, worker: WorkerMachine, number: str, session: Target) -> None:
        """A worker pays."""
        task_id = worker.current_task
        self.write_begins(worker, "pay", session)
        lease = self._books.lease_of(worker)
        if lease is not None and lease.number > 1:
            self._books.broken(f"{task_id}: a recovered run pays")
        if number not in [order.number for order in self._books.orders.get(task_id, [])]:
            self._books.broken(f"{task_id}: pays {number}, which is not its order")

    def paid(self, order: Order) -> None:
        """The shop has got money."""
        self._books.trace.count("payments")
        if order.payments > 1:
            self._books.broken(f"order {order.number} was paid {order.payments} times", grave=True)

    def cart_cleared(self, lines: int) -> None:
        """The shop has emptied the cart."""
        if lines:
            self._books.trace.count("leftovers emptied")

    def looked(
        self,
        worker: WorkerMachine,
        began: float,
        shown: tuple[list[Order], list[Order]],
        *,
        read: bool,
        covered: bool,
    ) -> None:
        """A worker has looked at the order list; `shown`: what the list held when it began, on whatever page, and when
        it ended. An order that it came to show meanwhile the worker may have seen, and need not have.
        """
        task_id = worker.current_task
        intent = self._books.intents.get(task_id)
        if intent is None or worker.tokens.get(task_id) is None:
            return
        codes = {code_of(item["item_url"]) for item in intent["items"]}
        at_first, in_the_end = shown
        of_task = {order.number for order in self._books.orders.get(task_id, [])}
        own = [order.number for order in at_first if order.number in of_task]
        alike = [
            order for order in in_the_end if order.number not in own and codes & {ln.code for ln in order.quote.lines}
        ]
        if any(not order.placed_here for order in in_the_end):
            self._books.trace.count("strangers' orders seen")
        if alike:
            self._books.trace.count("looks at orders alike")
        rows = worker.read("SELECT site_order_id FROM orders WHERE task_id <> ?", task_id)
        known = {row["site_order_id"] for row in rows}
        self._books.looks[worker.tokens[task_id]] = Look(
            worker.tokens[task_id], began, read, covered,
            own=tuple(own),
            others=len(alike),
            unexplained=sum(order.number not in known for order in alike),
        )  # fmt: skip

    def written_over(self, worker_name: str, path: str) -> None:
        """A file of evidence was there before."""
        self._books.broken(f"{worker_name} has written over {path}")


def code_of(item_url: str) -> str:
    """The article of an item's page."""
    return item_url.rstrip("/").rpartition("/")[2]
