"""Pictures of figures: geometry in units of the drawing, which the template draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.domain.budgets import BudgetState
from gateway.operations.overview import STEPS, Step

WIDTH: Final = 720
HEIGHT: Final = 90
_TOP: Final = 8

GAUGE_WIDTH: Final = 200


@dataclass(frozen=True, slots=True)
class Column:
    """A bar that stands on the ground line."""

    x: float
    y: float
    height: float
    value: int
    at: str


@dataclass(frozen=True, slots=True)
class Chart:
    """Columns from left to right; `most`: the largest value, which reaches the top."""

    columns: tuple[Column, ...]
    width: float
    most: int


def queue_chart(steps: Sequence[Step]) -> Chart:
    """Draw how many tasks waited."""
    return _chart(steps, [step.queued for step in steps])


def decision_chart(steps: Sequence[Step]) -> Chart:
    """Draw how many decisions were taken."""
    return _chart(steps, [step.decisions for step in steps])


def _chart(steps: Sequence[Step], values: Sequence[int]) -> Chart:
    most, width = max(values, default=0), WIDTH / STEPS
    begin = WIDTH - len(steps) * width
    columns = []
    for number, (step, value) in enumerate(zip(steps, values, strict=True)):
        if value:
            height = max(2.0, value / most * (HEIGHT - _TOP))
            left = begin + number * width
            columns.append(Column(round(left, 1), round(HEIGHT - height, 1), round(height, 1), value, step.begins_at))
    return Chart(tuple(columns), round(width - 1, 1), most)


@dataclass(frozen=True, slots=True)
class Gauge:
    """How much of a budget is paid and reserved: widths, and per cent of all in whole numbers."""

    settled: float
    reserved: float
    percent: int


def gauge(state: BudgetState) -> Gauge:
    """Draw a budget."""
    whole = max(state.budget.limit_yen, state.use.yen, 1)
    settled = state.use.settled_yen / whole * GAUGE_WIDTH
    reserved = state.use.reserved_yen / whole * GAUGE_WIDTH
    percent = 100 if not state.budget.limit_yen else state.use.yen * 100 // state.budget.limit_yen
    return Gauge(round(settled, 1), round(reserved, 1), percent)
