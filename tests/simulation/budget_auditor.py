"""Keeps a ledger of its own of what was permitted and bought, and judges the gateway's by it at every commit.

Each rule is a sentence of docs/specification.md#budgets, written down again.
"""

import json
import sqlite3
from collections.abc import Iterator
from datetime import datetime

from sandbox_shop.orders import Order
from tests.simulation.books import PLACED, Books, Event
from tests.simulation.budgets import Line, Standing, period_of


class BudgetAuditor:
    """Sees each budget that is set, each permit, each report, and each order that the shop takes."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def told(self, row: sqlite3.Row) -> None:
        """The operator has set a budget."""
        if row["kind"] != "budget_set":
            return
        said, budgets = json.loads(row["details_json"]), self._books.ledger.budgets
        most = max(said["limit_yen"], budgets[said["budget"]].most if said["budget"] in budgets else 0)
        budgets[said["budget"]] = Standing(said["scope"], said["period"], said["limit_yen"], most)

    def grounds_to_refuse(self, event: Event) -> Iterator[str]:
        """Why a permit must not be given by what is left."""
        payable = _payable(event)
        for budget_id, left in self._left(event):
            if payable is None:
                yield f"without terms, though {budget_id} counts it"
            elif payable > left:
                yield f"for {payable} yen, with {left} left of {budget_id}"

    def granted(self, event: Event) -> None:
        """A permit takes its amount from each budget that counts it, in place of what an earlier one took."""
        payable, at = _payable(event) or 0, _moment(event)
        left = dict(self._left(event))
        for line in self._lines(event.task_id):
            line.counted = 0
        for budget_id, rest in left.items():
            self._books.trace.count("permits under a budget")
            if payable == rest:
                self._books.trace.count("permits for all that was left of a budget")
            period = period_of(self._books.ledger.budgets[budget_id].period, at)
            if any(of == budget_id and line.period != period for (of, _), line in self._books.ledger.lines.items()):
                self._books.trace.count("permits in a later period of a budget")
            self._books.ledger.lines[budget_id, event.task_id] = Line(period, payable, payable)

    def refused(self, event: Event) -> None:
        """A budget has refused a permit: there was not so much left."""
        if event.details["refusal"] != "budget_exceeded":
            return
        payable, left = _payable(event) or 0, min((rest for _, rest in self._left(event)), default=None)
        self._books.trace.count("permits refused by a budget")
        if left is None or payable <= left:
            self._books.broken(f"{event.task_id}: refused {payable} yen by a budget with {left} left")
        elif payable == left + 1:
            self._books.trace.count("permits refused by a budget for one yen")

    def followed(self, event: Event) -> None:
        """Something was told of an order: what of it counts from then on."""
        kind, said = event.row["kind"], event.details
        if kind == "resolve":
            failed = event.row["status_after"] == "failed"
            self._count(event, 0 if failed else None)
        elif said.get("state") in PLACED or said.get("site_order_id"):
            cancelled = kind != "report_refused" and event.task.newest_state == "cancelled"
            self._count(event, 0 if cancelled else None)

    def placed(self, task_id: str, order: Order) -> None:
        """The shop has taken an order: with all others of its period it is within the budget."""
        ledger = self._books.ledger
        for budget_id, budget in ledger.budgets.items():
            line = ledger.lines.get((budget_id, task_id))
            if line is None:
                continue
            self._books.trace.count("orders under a budget")
            bought = sum(
                orders[0].quote.payable_yen
                for other, orders in self._books.orders.items()
                if other != task_id
                and (of_other := ledger.lines.get((budget_id, other))) is not None
                and (of_other.period, of_other.counted > 0) == (line.period, True)
            )
            if bought + order.quote.payable_yen > budget.most:
                paid = f"{bought} + {order.quote.payable_yen} yen"
                self._books.broken(f"{task_id}: ordered beyond {budget_id}: {paid} of {budget.most}", grave=True)

    def judge(self, database: sqlite3.Connection) -> None:
        """The gateway's sums are those of this ledger."""
        ledger = self._books.ledger
        rows = database.execute(
            "SELECT budget_id, period, starts_at, reserved_yen + settled_yen AS used"
            " FROM budget_periods JOIN budgets USING (budget_id)"
        ).fetchall()
        told = {
            (row["budget_id"], period_of(row["period"], datetime.fromisoformat(row["starts_at"]))): row["used"]
            for row in rows
        }
        for budget_id, period in sorted({(of, line.period) for (of, _), line in ledger.lines.items()} | told.keys()):
            used, known = ledger.used(budget_id, period), told.get((budget_id, period), 0)
            if used != known:
                self._books.broken(f"{budget_id} has {known} yen used, of its orders {used} count")

    def _left(self, event: Event) -> Iterator[tuple[str, int]]:
        """What is left of each budget that counts the task, its own former permit left out."""
        for budget_id, budget in self._books.ledger.budgets.items():
            if budget.counts:
                period = period_of(budget.period, _moment(event))
                yield budget_id, max(0, budget.limit - self._books.ledger.used(budget_id, period, event.task_id))

    def _lines(self, task_id: str) -> list[Line]:
        return [line for (_, of), line in self._books.ledger.lines.items() if of == task_id]

    def _count(self, event: Event, yen: int | None) -> None:
        """`yen` None: what the shop has taken for the order, else what was permitted."""
        orders = self._books.orders.get(event.task_id)
        for line in self._lines(event.task_id):
            paid = orders[0].quote.payable_yen if orders else line.yen
            line.counted = paid if yen is None else yen
            if yen == 0:
                self._books.trace.count("amounts of budgets released")


def _moment(event: Event) -> datetime:
    return datetime.fromisoformat(event.row["occurred_at"])


def _payable(event: Event) -> int | None:
    payable: int | None = (event.details.get("terms") or {}).get("payable_yen")
    return payable
