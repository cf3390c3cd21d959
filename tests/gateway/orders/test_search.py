"""Finding tasks: each condition alone and with others, in both orders, against a plain reading of all tasks."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.instant import parse_utc, utc_text
from gateway.domain.labels import labels_of
from gateway.domain.models import Submission
from gateway.domain.search import Position, TaskSearch
from gateway.domain.states import OrderState, TaskStatus
from gateway.orders import search
from gateway.orders.expire import expire_due
from gateway.orders.search import search_tasks
from gateway.orders.submit import submit
from gateway.store import task_search
from gateway.store.port import ABOVE_ALL_ROWS
from tests.gateway.support.book import UPSTREAM, Book
from tests.gateway.support.manual_time import ManualTime

TASKS = 60


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Book]:
    """Tasks of all kinds, each a second after the one before."""
    chance = random.Random(5)  # noqa: S311 - a test
    time = ManualTime()
    with Book(tmp_path_factory.mktemp("search") / "gateway.db", time) as book:
        for number in range(TASKS):
            labels = [f'"team":"{chance.choice("ab")}"', *(['"urgent":""'] if number % 7 == 0 else [])]
            wanted = Submission(
                f"{chance.choice(('po', 'po-x', 'Z'))}-{number}",
                chance.choice(("rakuten", "sandbox")),
                "{}",
                None,
                account=chance.choice(("", "buyer-1", "buyer-2")),
                labels_json="{" + ",".join(labels) + "}",
            )
            book.run(submit, book.policy, wanted, UPSTREAM)
            time.advance(1)
        for number in range(20):
            lease = book.open(replace(book.request(), accounts=("", "buyer-1", "buyer-2")))
            assert lease is not None
            book.renew(lease)
            if number % 3 == 0:
                book.report(lease, OrderState.ORDERED, site_order_id=f"A-{number}", terminal=number % 2 == 0)
            if number % 3 == 1:
                book.report(lease, OrderState.CREATED, terminal=True)
            time.advance(400)
            book.run(expire_due)
        yield book


def every(book: Book) -> list[dict[str, Any]]:
    """All tasks with what is known of each, read once: the fixture's book changes no more."""
    if not hasattr(book, "every"):
        book.every = _read(book)  # type: ignore[attr-defined]
    return book.every  # type: ignore[attr-defined,no-any-return]


def _read(book: Book) -> list[dict[str, Any]]:
    return [
        row
        | {
            "labels": labels_of(row["labels_json"]),
            "numbers": {
                each["site_order_id"]
                for each in book.rows("SELECT * FROM order_numbers")
                if each["task_id"] == row["task_id"]
            },
            "waits": any(
                each["task_id"] == row["task_id"]
                for each in book.rows("SELECT task_id FROM alerts WHERE cleared_at IS NULL")
            ),
        }
        for row in book.rows("SELECT * FROM tasks ORDER BY row")
    ]


CONDITIONS: dict[str, Callable[[dict[str, Any], Any], bool]] = {
    "statuses": lambda task, wanted: task["status"] in wanted,
    "site": lambda task, wanted: task["site"] == wanted,
    "account": lambda task, wanted: task["account"] == wanted,
    "labels": lambda task, wanted: all(task["labels"].get(key) == value for key, value in wanted),
    "site_order_id": lambda task, wanted: wanted in task["numbers"],
    "created_from": lambda task, wanted: task["created_at"] >= wanted,
    "created_to": lambda task, wanted: task["created_at"] < wanted,
    "updated_from": lambda task, wanted: task["updated_at"] >= wanted,
    "updated_to": lambda task, wanted: task["updated_at"] < wanted,
    "needs_decision": lambda task, _: task["waits"],
    "task_id_prefix": lambda task, wanted: task["task_id"].startswith(wanted),
    "task_id_contains": lambda task, wanted: wanted in task["task_id"],
}


def values(book: Book) -> dict[str, tuple[Any, ...]]:
    tasks = every(book)
    created = sorted(task["created_at"] for task in tasks)
    updated = sorted(task["updated_at"] for task in tasks)
    tick = timedelta(microseconds=1)
    return {
        "statuses": (
            (TaskStatus.QUEUED,),
            (TaskStatus.STALE,),
            (TaskStatus.NEEDS_HUMAN, TaskStatus.STALE),
            (TaskStatus.LEASED,),
        ),
        "site": ("rakuten", "sandbox"),
        "account": ("buyer-1",),
        "labels": ((("team", "a"),), (("team", "b"), ("urgent", "")), (("urgent", "no"),)),
        "site_order_id": ("A-0", "A-3", "A-99"),
        "created_from": (created[20], utc_text(parse_utc(created[20]) + tick), "9999-01-01T00:00:00.000000Z"),
        "created_to": (created[30], utc_text(parse_utc(created[30]) + tick), "0001-01-01T00:00:00.000000Z"),
        "updated_from": (updated[45], utc_text(parse_utc(updated[45]) + tick)),
        "updated_to": (updated[50], utc_text(parse_utc(updated[50]) + tick)),
        "needs_decision": (True,),
        "task_id_prefix": ("po-", "po-x", "Z-1", "nothing"),
        "task_id_contains": ("-x-", "1", "nothing"),
    }


def expected(book: Book, wanted: dict[str, Any], *, oldest_first: bool) -> list[str]:
    found = [task for task in every(book) if all(CONDITIONS[name](task, value) for name, value in wanted.items())]
    if {"updated_from", "updated_to"} & wanted.keys():
        found.sort(key=lambda task: (task["updated_at"], task["row"]))
    if not oldest_first:
        found.reverse()
    return [task["task_id"] for task in found]


def paged(book: Book, wanted: TaskSearch, size: int) -> list[str]:
    """All pages; the sizes of all but the last are right."""
    found: list[str] = []
    after: Position | None = None
    for _ in range(1_000):
        page = book.run(search_tasks, wanted, after, size)
        found += [detail.task.task_id for detail in page.items]
        after = page.next_after
        if after is None:
            return found
    raise AssertionError("pages without end")


def test_there_is_something_to_find_and_something_to_leave_out(full: Book) -> None:
    for name, each in values(full).items():
        lengths = [len(expected(full, {name: value}, oldest_first=False)) for value in each]
        assert max(lengths) > 0, name
        assert min(lengths) < TASKS, name


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("name", CONDITIONS)
def test_a_condition_by_itself(full: Book, name: str, oldest_first: bool) -> None:
    for value in values(full)[name]:
        wanted = TaskSearch(**{name: value}, oldest_first=oldest_first)
        found = expected(full, {name: value}, oldest_first=oldest_first)
        assert paged(full, wanted, 7) == paged(full, wanted, 200) == found, value


@pytest.mark.parametrize("oldest_first", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_conditions_together(full: Book, seed: int, oldest_first: bool) -> None:
    chance, possible = random.Random(seed), values(full)  # noqa: S311 - a test
    for names in product(CONDITIONS, CONDITIONS):
        wanted = {name: chance.choice(values_of) for name, values_of in possible.items() if name in names}
        found = expected(full, wanted, oldest_first=oldest_first)
        assert paged(full, TaskSearch(**wanted, oldest_first=oldest_first), 9) == found, wanted


@pytest.mark.parametrize("limit", [1, 16, 25])
def test_a_page_that_has_looked_at_enough_says_where_to_go_on(
    full: Book, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(search, "MAX_LOOKED_AT", limit)
    monkeypatch.setattr(search, "MAX_LOOKED_THROUGH", limit)
    monkeypatch.setattr(search, "FEW_IDS", 1)
    for wanted in ({"task_id_contains": "-x-"}, {"task_id_prefix": "po-"}, {"site": "sandbox", "account": "buyer-2"}):
        for oldest_first in (False, True):
            assert paged(full, TaskSearch(**wanted, oldest_first=oldest_first), 200) == expected(
                full, wanted, oldest_first=oldest_first
            )
    first = full.run(search_tasks, TaskSearch(task_id_contains="nothing"), None, 200)
    assert (first.items, first.next_after is None) == ((), limit >= TASKS)


def test_a_task_filed_meanwhile_is_neither_repeated_nor_makes_another_one_skipped(tmp_path: Path) -> None:
    with Book(tmp_path / "gateway.db", ManualTime()) as book:
        for number in range(6):
            book.submit(f"po-{number}")
        first = book.run(search_tasks, TaskSearch(statuses=(TaskStatus.QUEUED, TaskStatus.FAILED)), None, 3)
        book.submit("po-late")
        book.cancel("po-1")
        rest = book.run(
            search_tasks, TaskSearch(statuses=(TaskStatus.QUEUED, TaskStatus.FAILED)), first.next_after, 200
        )
        seen = [detail.task.task_id for detail in (*first.items, *rest.items)]
        assert seen == [f"po-{number}" for number in reversed(range(6))]


def test_the_first_one_of_a_time_is_found_whatever_numbers_are_left_out(book: Book) -> None:
    """A database may leave out row numbers; halving must come to the same as looking at all."""
    for number in range(20):
        book.submit(f"po-{number}")
        book.time.advance(10)
    book.connection.execute("UPDATE tasks SET row = row * row + 1000")
    rows = [(row["row"], row["created_at"]) for row in book.rows("SELECT row, created_at FROM tasks ORDER BY row")]
    times = ["", "9", *(at for _, at in rows), *(f"{at[:-1]}5Z" for _, at in rows)]
    found = {at: book.run(lambda tx, _, at=at: task_search.first_row_of(tx, at)) for at in times}
    assert found == {at: next((row for row, filed in rows if filed >= at), ABOVE_ALL_ROWS) for at in times}
