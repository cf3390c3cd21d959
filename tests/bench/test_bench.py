"""The benchmarks measure what they say and judge it right."""

from pathlib import Path

import pytest

from bench.processes import floor, measured
from bench.result import Result, percentile


def test_percentiles() -> None:
    values = [float(value) for value in range(101)]
    assert (percentile(values, 50), percentile(values, 99)) == (50.0, 99.0)


@pytest.mark.parametrize(
    ("value", "at_least", "met"), [(0.8, True, True), (0.79, True, False), (0.8, False, True), (0.81, False, False)]
)
def test_a_goal_is_met_up_to_its_very_value(value: float, at_least: bool, met: bool) -> None:
    assert Result("name", "", "", value, 0.8, at_least=at_least, unit="x").met is met


@pytest.mark.extended
def test_the_floor_answers_every_load(tmp_path: Path) -> None:
    with floor(tmp_path) as (target, _program):
        assert len(measured("load", "wakeup", 3, target)["ms"]) == 3
        assert measured("load", "cycle", 0.2, target)["per_second"] > 0
        submits = measured("load", "submit", 0.2, target)
    assert submits["per_second"] > 0
    assert all(value > 0 for value in submits["ms"])


def test_a_load_that_cannot_run_says_why() -> None:
    with pytest.raises(RuntimeError, match="UNAVAILABLE"):
        measured("load", "cycle", 0.2, "127.0.0.1:1")
