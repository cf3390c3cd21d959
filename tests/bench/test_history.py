"""The history of ratios: what is kept of a run, and what counts as worse."""

import json
from pathlib import Path

from bench.history import record, worse
from bench.profile import counted
from bench.result import Result, compared, rate


def row(ratio: float, *, at_least: bool = True, spread: float | None = 0.05) -> Result:
    return Result("submits", "", "", ratio, 0.8, at_least, "x", spread)


def test_a_row_is_the_ratio_of_medians_with_its_spread() -> None:
    found = compared("submits", [100.0, 200.0, 100.0], [50.0, 100.0, 60.0], 0.5, at_least=True, shown=rate)
    assert (found.beside, found.ours, found.value, found.met) == ("100/s", "60/s", 0.6, True)
    assert found.spread is not None
    assert round(found.spread, 3) == 0.167


def test_a_run_is_compared_with_those_before(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    assert [*worse([row(0.1)], path)] == []
    for ratio in (0.8, 0.9, 1.0):
        record([row(ratio), row(0.5, spread=None)], path)
    (first, *_) = [json.loads(line) for line in path.read_text().splitlines()]
    assert first["ratios"] == {"submits": 0.8}
    assert [*worse([row(0.77)], path)] == []
    assert [*worse([row(0.76)], path)] == ["submits: 0.76, before 0.90"]
    assert [*worse([row(1.03, at_least=False)], path)] == []
    assert [*worse([row(1.04, at_least=False)], path)] == ["submits: 1.04, before 0.90"]
    assert [*worse([row(0.1, spread=None)], path)] == []


def test_samples_are_counted_once_for_each_function_on_the_stack() -> None:
    own, within, total = counted([[[0, 1], [0, 1, 1], []], [[2]]], ["main", "call", "thread"])
    assert (own, within, total) == ({"call": 2, "thread": 1}, {"main": 2, "call": 2, "thread": 1}, 3)
