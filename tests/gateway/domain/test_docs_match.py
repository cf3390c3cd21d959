"""The pages that people read about the protocol say what the code does."""

import re
from collections.abc import Iterator
from pathlib import Path

from gateway.api.errors import ERRORS
from gateway.domain.account_queries import QUERY_TRANSITIONS, QueryEvent, QueryStatus
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, TaskStatus
from gateway.domain.transitions import TRANSITIONS, Event

DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "protocol.md").read_text()
QUEUES = (DOCS / "two-queues.md").read_text()


def rows(heading: str, page: str = PAGE) -> Iterator[list[str]]:
    """The cells of each row of the table whose first column has this heading."""
    table = re.search(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE)
    assert table, heading
    for line in table[1].splitlines():
        yield [cell.strip() for cell in line.strip("|").split("|")]


def names(cell: str) -> list[str]:
    return [part.strip(" `") for part in cell.split(",")]


def test_the_table_of_transitions_is_the_one_in_the_code() -> None:
    documented: dict[tuple[Event, TaskStatus | None], frozenset[TaskStatus]] = {}
    for event, sources, targets, _ in rows("event"):
        for source in names(sources):
            before = None if source == "none" else TaskStatus(source)
            after = [source] if targets == "same" else names(targets)
            documented[Event(event.strip("`")), before] = frozenset(TaskStatus(name) for name in after)
    assert documented == dict(TRANSITIONS)


def test_the_table_of_a_query_s_transitions_is_the_one_in_the_code() -> None:
    documented = {
        (QueryEvent(event.strip("`")), None if source == "none" else QueryStatus(source)): set(names(targets))
        for event, source, targets, _ in rows("event of a query", QUEUES)
    }
    assert documented == dict(QUERY_TRANSITIONS)


def test_the_drawing_shows_every_status_and_every_move_from_one_to_another() -> None:
    drawing = PAGE.split("```")[1]
    moves = {event.value for (event, before), after in TRANSITIONS.items() if after != frozenset({before})}
    assert {name for name in (*moves - {"report"}, *TaskStatus) if name not in drawing} == set()


def test_every_order_state_is_named() -> None:
    section = PAGE.split("## Order states")[1].split("##")[0]
    assert set(re.findall(r"`([a-z_]+)`", section)) - {"latest_state"} == set(OrderState)


def test_every_reason_for_a_refusal_has_its_reply() -> None:
    documented = [reason for _, reasons, _ in rows("status") for reason in names(reasons)]
    assert sorted(documented) == sorted(reason.name for reason in Reason)


def test_every_code_of_the_json_contract_has_its_reasons() -> None:
    documented = {(int(code), reason) for code, reasons in rows("code") for reason in names(reasons)}
    assert documented == {(row.code, reason.name) for reason, row in ERRORS.items() if row.code != row.http}
