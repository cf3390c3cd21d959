"""The same wish twice is filed and told (docs/specification.md#the-same-wish-twice)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from gateway.domain.intents import intent_digest, intent_key
from gateway.domain.json_text import parse_again
from gateway.domain.models import Submitted
from gateway.domain.states import TaskStatus
from tests.gateway.support.book import Book
from tests.gateway.support.manual_time import TICK

DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def _a_day(book: Book) -> None:
    book.policy = replace(book.policy, same_intent_within=DAY)


def submit(book: Book, task_id: str, intent_json: str = '{"a": 1, "b": [1.0]}', **fields: Any) -> Submitted:
    key = intent_key(
        fields.get("site", "rakuten"), fields.get("account", ""), parse_again(intent_json), len(intent_json)
    )
    return book.submit(intent_key=key, task_id=task_id, intent_json=intent_json, **fields)


def test_the_second_is_filed_and_names_the_first(book: Book) -> None:
    assert submit(book, "po-1").same_intent_as is None
    second = submit(book, "po-2", '{ "b": [1.0], "a": 1 }')
    assert (second.created, second.same_intent_as) == (True, "po-1")
    assert book.task("po-2").same_intent_as == "po-1"
    assert book.details("submit", "po-2") == [{"same_intent_as": "po-1"}]
    assert submit(book, "po-3").same_intent_as == "po-2", "the newest is named"
    assert book.task("po-1").same_intent_as is None


@pytest.mark.parametrize("other", ['{"a": 1, "b": [1]}', '{"a": 2, "b": [1.0]}', "{}"])
def test_another_intent_is_another_wish(book: Book, other: str) -> None:
    submit(book, "po-1")
    assert submit(book, "po-2", other).same_intent_as is None


def test_another_site_or_account_is_another_wish(book: Book) -> None:
    submit(book, "po-1", account="a")
    assert submit(book, "po-2", account="b").same_intent_as is None
    assert submit(book, "po-3", account="a", site="sandbox").same_intent_as is None
    assert submit(book, "po-4", account="a").same_intent_as == "po-1"


@pytest.mark.parametrize(("later", "same"), [(DAY, "po-1"), (DAY + TICK, None)])
def test_it_counts_up_to_the_end_of_its_time_and_no_longer(book: Book, later: timedelta, same: str | None) -> None:
    submit(book, "po-1")
    book.time.advance(later)
    assert submit(book, "po-2").same_intent_as == same


def test_a_wish_that_failed_counts_no_more(book: Book) -> None:
    submit(book, "po-1")
    submit(book, "po-2")
    book.cancel("po-2")
    assert book.status("po-2") is TaskStatus.FAILED
    assert submit(book, "po-3").same_intent_as == "po-1"


def test_a_repeat_of_the_same_task_answers_what_the_first_one_did(book: Book) -> None:
    submit(book, "po-1")
    assert submit(book, "po-1").same_intent_as is None
    submit(book, "po-2")
    again = submit(book, "po-2")
    assert (again.created, again.same_intent_as) == (False, "po-1")


def test_where_nobody_asks_nothing_is_told(book: Book) -> None:
    for task_id in ("po-1", "po-2"):
        assert book.submit(task_id).same_intent_as is None


def test_a_digest_is_the_same_whether_written_at_once_or_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    intents = ['{"b": [1, 1.0, -0.0, 1e400000, null], "a": "日本 \\u0041"}'.replace("1e400000", "1e40"), "{}"]
    at_once = [intent_digest(intent) for intent in intents]
    monkeypatch.setattr("gateway.domain.intents._SMALL", 0)
    assert [intent_digest(intent) for intent in intents] == at_once
