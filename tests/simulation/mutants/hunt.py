"""How many runs it takes until a mutant is found guilty, and of what."""

import re
from dataclasses import dataclass

from tests.simulation import run
from tests.simulation.layout import World
from tests.simulation.mutants import accounts, approvals, budgets, conditions, gateway, gateways, recovery, worker  # noqa: F401 -- each registers its mutants
from tests.simulation.mutants.registry import BROKEN, MUTANTS, WORLDS

MOST_RUNS = 100
"""So many runs a mutant may survive."""


def lower_first(sentence: str) -> str:
    """As a part of a sentence, without the full stop."""
    return sentence[:1].lower() + sentence[1:].rstrip(".")


@dataclass(frozen=True, slots=True)
class Found:
    """`runs` 0: it was not found. `seed`: of the run that found it. `why`: what the auditor said."""

    name: str
    runs: int
    seed: int
    why: str

    def row(self) -> str:
        """The mutant's row in docs/guarantees.md; the auditor's sentence without what is the run's own."""
        rule = re.sub(r"^t-\d+: |^worker-[abc] (?=has)", "", self.why)
        return f"| `{self.name}` | {lower_first(BROKEN[self.name])} | {rule} | {self.runs} |\n"


def hunt(seed: int, guilty_anyway: frozenset[tuple[World, int]], name: str) -> Found:
    """Runs from `seed` on until the auditor objects, but to none that it objects to without the mutant."""
    world = WORLDS[name]
    for number in range(MOST_RUNS):
        if (world, seed + number) in guilty_anyway:
            continue
        with MUTANTS[name]():
            result = run.simulate(seed + number, world)
        if result.violations:
            return Found(name, number + 1, seed + number, result.violations[0])
    return Found(name, 0, 0, "")
