"""The fuzzer's properties on inputs that once mattered, on a handful of new ones, and with parsers that are broken."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.domain import json_text
from tests.fuzz import intents, shop_pages
from tests.fuzz.__main__ import MAX_INPUT, _with_hypothesis
from worker.sites.shown import Document

CORPUS = Path(__file__).parent / "corpus"
CHECKS: dict[str, Callable[[bytes], str]] = {"intent": intents.check, "pages": shop_pages.check}


def inputs(target: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / target).iterdir())]


@pytest.mark.parametrize("target", CHECKS)
def test_inputs_that_once_mattered(target: str) -> None:
    assert inputs(target)
    for data in inputs(target):
        CHECKS[target](data)


def test_the_real_pages_say_something() -> None:
    outcomes = [shop_pages.check(bytes([255, number])) for number in range(len(shop_pages.real_pages()))]
    assert outcomes.count("an amount") == 2
    assert outcomes.count("a value") >= 3


@pytest.mark.parametrize("target", CHECKS)
def test_inputs_that_nobody_has_seen(target: str) -> None:
    @settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.binary(max_size=MAX_INPUT))
    def tried(data: bytes) -> None:
        CHECKS[target](data)

    tried()


@pytest.mark.extended
def test_without_atheris_hypothesis_makes_the_inputs(capsys: pytest.CaptureFixture[str]) -> None:
    assert _with_hypothesis("intent", 1) == 0
    assert "inputs in 1 s with Hypothesis" in capsys.readouterr().out


def test_a_reader_that_takes_the_first_of_several_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(document: Document, selector: str, within: Any = None) -> Any:
        return next(iter(document.every(selector, within)), None)

    monkeypatch.setattr(Document, "at_most_one", first)
    assert found_out("pages") >= {"amount-twice.html"}


def test_a_reader_for_which_everything_is_shown_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worker.sites.shown._NOSCRIPT", _Nothing())
    assert found_out("pages") >= {"noscript-leaves-open.html"}


class _Nothing:
    """A pattern that replaces nothing."""

    def sub(self, _by: str, text: str) -> str:
        return text


def test_a_gateway_that_takes_a_key_twice_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_text, "_DECODER", json.JSONDecoder())
    assert found_out("intent") >= {"key-twice.json", "number-beyond.json", "not-a-number.json"}


def found_out(target: str) -> set[str]:
    """The inputs under which a property no longer holds."""
    found = set()
    for path in sorted((CORPUS / target).iterdir()):
        try:
            CHECKS[target](path.read_bytes())
        except AssertionError:
            found.add(path.name)
    return found
