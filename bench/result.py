"""What a benchmark measured, beside its floor and its goal."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles

from rich.console import Console
from rich.table import Table


class Skipped(Exception):  # noqa: N818 - nothing is wrong
    """What a benchmark needs is not on this machine; says what."""


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table. `beside`: the figure that ours is compared with, of the floor, another engine or a peer.

    `value` is what the goal is about: a ratio to that figure, or ours itself. Without a goal it is told and not judged.
    `spread`: by how much the ratio of a single round differs from it at most, as a share; None: not measured in turn.
    """

    name: str
    beside: str
    ours: str
    value: float
    goal: float | None
    at_least: bool
    unit: str
    spread: float | None = None

    @property
    def met(self) -> bool | None:
        """True if the goal was reached; None if there is none."""
        if self.goal is None:
            return None
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return asdict(self) | {"met": self.met}


def compared(
    name: str,
    beside: Sequence[float],
    ours: Sequence[float],
    goal: float | None,
    *,
    at_least: bool,
    shown: Callable[[float], str],
) -> Result:
    """A figure beside another one, measured in turn: the ratio of medians, and how far rounds lie from it."""
    ratio = median(ours) / median(beside)
    spread = max(abs(our / other / ratio - 1) for other, our in zip(beside, ours, strict=True))
    return Result(name, shown(median(beside)), shown(median(ours)), ratio, goal, at_least, "x", spread)


def rate(value: float) -> str:
    """So many a second."""
    return f"{value:,.0f}/s"


def milliseconds(value: float) -> str:
    """A time."""
    return f"{value:.3f} ms"


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that so many percent of the values do not exceed."""
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def show(results: Sequence[Result], console: Console) -> None:
    """Prints the table."""
    table = Table(title="order-gateway, and what it is measured beside", title_justify="left")
    for heading in ("what", "beside", "order-gateway"):
        table.add_column(heading)
    for heading in ("result", "spread", "goal", "reached"):
        table.add_column(heading, justify="right")
    reached = {True: "[green]yes[/]", False: "[red]no[/]", None: ""}
    for result in results:
        sign = "≥" if result.at_least else "≤"
        goal = "" if result.goal is None else f"{sign} {result.goal:g} {result.unit}"
        value = f"{result.value:,.2f} {result.unit}"
        spread = "" if result.spread is None else f"± {result.spread:.0%}"
        table.add_row(result.name, result.beside, result.ours, value, spread, goal, reached[result.met])
    console.print(table)
