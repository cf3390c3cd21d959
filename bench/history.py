"""The ratios of former runs, a line a run in `bench/history.jsonl`, so that a change for the worse is seen."""

import json
import subprocess
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Final

from bench.processes import REPOSITORY
from bench.result import Result

HISTORY: Final = REPOSITORY / "bench" / "history.jsonl"
COMPARED_WITH: Final = 5
"""Runs back; their median is what a run is compared with."""
WORSE: Final = 0.1
"""By which share a ratio has to be worse to be told, beyond the spread of its own rounds."""


def ratios(results: Sequence[Result]) -> dict[str, float]:
    """The rows that mean something on any machine: what was measured in turn with something else."""
    return {result.name: round(result.value, 3) for result in results if result.spread is not None}


def record(results: Sequence[Result], path: Path = HISTORY) -> None:
    """Append a run, with the commit that it measured."""
    line = {"commit": _commit(), "at": datetime.now(UTC).strftime("%Y-%m-%dT%H:%MZ"), "ratios": ratios(results)}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def worse(results: Sequence[Result], path: Path = HISTORY) -> Iterator[str]:
    """Name each ratio that is worse than in the runs before, with both."""
    runs = [json.loads(line)["ratios"] for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    for result in results:
        before = [run[result.name] for run in runs if result.name in run][-COMPARED_WITH:]
        if result.spread is None or not before:
            continue
        usual = median(before)
        change = result.value / usual - 1
        if (-change if result.at_least else change) > WORSE + result.spread:
            yield f"{result.name}: {result.value:.2f}, before {usual:.2f}"


def _commit() -> str:
    command = ["git", "describe", "--always", "--dirty", "--abbrev=7", "--exclude=*"]
    try:
        return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
