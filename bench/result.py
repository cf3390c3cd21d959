"""What a benchmark measured, beside its floor and its goal."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import quantiles

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Result:
    """One line of the table. `value` is what the goal is about: a ratio to the floor, or the figure itself."""

    name: str
    floor: str
    ours: str
    value: float
    goal: float
    at_least: bool
    unit: str

    @property
    def met(self) -> bool:
        """True if the goal was reached."""
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    def as_json(self) -> dict[str, object]:
        """For machines."""
        return asdict(self) | {"met": self.met}


def percentile(values: Sequence[float], percent: int) -> float:
    """The value that so many percent of the values do not exceed."""
    return quantiles(values, n=100, method="inclusive")[percent - 1]


def show(results: Sequence[Result], console: Console) -> None:
    """Prints the table."""
    table = Table(title="order-gateway beside its floor", title_justify="left")
    for heading in ("what", "floor", "order-gateway"):
        table.add_column(heading)
    for heading in ("result", "goal", "reached"):
        table.add_column(heading, justify="right")
    for result in results:
        sign = "≥" if result.at_least else "≤"
        table.add_row(
            result.name,
            result.floor,
            result.ours,
            f"{result.value:,.2f} {result.unit}",
            f"{sign} {result.goal:g} {result.unit}",
            "[green]yes[/]" if result.met else "[red]no[/]",
        )
    console.print(table)
