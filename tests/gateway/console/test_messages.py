"""The catalogues: the same keys and names in each, and every key that a page asks for."""

import re
from pathlib import Path
from string import Formatter

import pytest

import gateway.console
from gateway.console.actions import ACTIONS, Kind
from gateway.console.messages import LANGUAGES, catalogue, preferred
from gateway.domain.account_queries import QueryStatus
from gateway.domain.approvals import ApprovalReason, Verdict
from gateway.domain.budgets import BudgetPeriod, EntryState
from gateway.domain.callbacks import CallbackStatus
from gateway.domain.findings import ENGLISH
from gateway.domain.models import AlertKind
from gateway.domain.statements import Spending
from gateway.domain.states import Placement, TaskStatus
from gateway.operations.choices import Choice

TEMPLATES = Path(gateway.console.__file__).parent / "templates"


def names_in(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != "en"])
def test_each_language_says_the_same(language: str) -> None:
    english, other = catalogue("en"), catalogue(language)
    assert other.keys() == english.keys()
    for key, text in english.items():
        assert other[key].strip(), key
        assert names_in(other[key]) == names_in(text), key


def test_every_key_of_a_page_is_there_and_every_other_is_of_a_known_kind() -> None:
    asked = {
        key
        for template in TEMPLATES.glob("*.html")
        for key in re.findall(r"""\bt\("([a-z0-9_.]+)"[,)]""", template.read_text())
    }
    made = {
        *(f"placement.{value}" for value in Placement),
        *(f"status.{value}" for value in TaskStatus),
        *(f"alert.{value}" for value in AlertKind),
        *(f"callback_status.{value}" for value in CallbackStatus),
        *(f"approval_reason.{value}" for value in ApprovalReason),
        *(f"verdict.{value}" for value in Verdict),
        *(f"query_status.{value}" for value in QueryStatus),
        *(f"period.{value}" for value in BudgetPeriod),
        *(f"entry.{value}" for value in EntryState),
        *(f"spending.{value}" for value in Spending),
        *(f"finding.{value}" for value in ENGLISH),
        *(f"why_not.{value}" for value in Choice),
        *(f"action.{name}.{part}" for name in ACTIONS for part in ("title", "effect", "done")),
        *(f"field.{field.name}" for a in ACTIONS.values() for field in a.fields if field.kind is not Kind.SUBJECT),
    }
    known = catalogue("en").keys()
    assert asked | made <= known
    families = ("page.", "span.", "timeline.", "sign_in.refused.", "filter.", "source.", "action.pause.all")
    assert [key for key in known - asked - made if not key.startswith(families)] == []


def test_the_sentences_are_those_that_every_other_transport_tells() -> None:
    english = catalogue("en")
    assert {kind: english[f"finding.{kind}"] for kind in ENGLISH} == dict(ENGLISH)


@pytest.mark.parametrize(
    ("told", "language"),
    [
        ("", "en"), ("ja", "ja"), ("zh-TW,en;q=0.5", "zh"), ("fr, en-GB;q=0.3, ja;q=0.8", "ja"), ("de", "en"),
        ("ja;q=0", "en"), ("ja;q=nonsense", "en"), ("," * 5000, "en"),
    ],
)  # fmt: skip
def test_a_browser_is_answered_in_what_it_asks_for(told: str, language: str) -> None:
    assert preferred(told) == language
