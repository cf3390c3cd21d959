"""Every named statement is used, every used name exists, and each statement runs on the schema."""

import ast
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

import gateway
from gateway.store.named_sql import load, parse, statements
from gateway.store.postgres.statements import own
from tests.gateway.support.book import Book

HOUSE = Path(gateway.__file__).parent
SOURCES = sorted(HOUSE.rglob("*.py"))


def calls(source: Path) -> Iterator[ast.Call]:
    """The calls by which a file runs statements."""
    for node in ast.walk(ast.parse(source.read_text())):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("one", "all", "insert", "change_one", "change", "change_any")
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "tx"
        ):
            yield node


def where(source: Path, node: ast.AST) -> str:
    return f"{source.relative_to(HOUSE)}:{getattr(node, 'lineno', 0)}"


def used_names() -> Iterator[str]:
    """Names that the code gives to a transaction."""
    for source in SOURCES:
        for call in calls(source):
            if call.args and isinstance(call.args[0], ast.Constant):
                yield str(call.args[0].value)


def test_only_the_store_knows_statements() -> None:
    outside = [source for source in SOURCES if HOUSE / "store" not in source.parents]
    assert len(outside) > 100
    elsewhere = {where(source, call) for source in outside for call in calls(source)}
    assert elsewhere == set()


def test_statements_are_named_as_they_stand() -> None:
    inside = [source for source in SOURCES if HOUSE / "store" in source.parents]
    composed = {
        where(source, call)
        for source in inside
        for call in calls(source)
        if not (call.args and isinstance(call.args[0], ast.Constant))
    }
    assert composed == set()


def test_nobody_ignores_how_many_rows_were_changed() -> None:
    ignored = {
        where(source, node)
        for source in SOURCES
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and isinstance(node.value.func, ast.Attribute)
        and node.value.func.attr == "change"
    }
    assert ignored == set()


def test_every_name_that_is_used_exists() -> None:
    used = set(used_names())
    assert len(used) > 30
    assert used - set(statements()) - set(own()) == set()


def test_every_statement_is_used() -> None:
    assert set(statements()) - set(used_names()) == set()


def test_every_statement_of_one_engine_is_used_by_it() -> None:
    folder = HOUSE / "store/postgres"
    text = "".join(source.read_text() for source in SOURCES if folder in source.parents)
    assert {name for name in own() if name not in statements() and f'"{name}"' not in text} == set()


def test_a_name_stands_once(tmp_path: Path) -> None:
    for file in ("a.sql", "b.sql"):
        (tmp_path / file).write_text("-- name: a\nSELECT 1;\n")
    with pytest.raises(ValueError, match="a stands twice"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("-- name: a\nSELECT 1;\n\n-- About b.\n-- name: b\nSELECT 2;\n", "the statement a does not end"),
        ("-- name: a\nSELECT 1\n", "the statement a does not end"),
        ("-- name: a\nSELECT 1;\n-- The end.\n", "the statement a does not end"),
        ("-- About a.\n-- name: a\nSELECT 1;\n", "before the first"),
    ],
)
def test_what_would_belong_to_the_wrong_statement_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse(text)


def test_a_comment_below_the_name_belongs_to_its_statement() -> None:
    assert parse("-- name: a\n-- About a.\nSELECT 1;\n\n-- name: b\nSELECT 2;\n") == [
        ("a", "-- About a.\nSELECT 1"),
        ("b", "SELECT 2"),
    ]


@pytest.mark.sqlite
def test_each_statement_compiles_on_the_schema(book: Book) -> None:
    for name, sql in statements().items():
        try:
            book.connection.execute(f"EXPLAIN {sql}", dict.fromkeys(re.findall(r":([a-z_]+)", sql)))
        except sqlite3.Error as error:
            pytest.fail(f"{name}: {error}")


@pytest.mark.sqlite
def test_what_runs_with_every_order_looks_at_few_rows(book: Book) -> None:
    names = [
        name for name in statements() if name.split("_")[0] in ("task", "tasks", "lease", "leases", "report", "order")
    ]
    walking = {}
    for name in names:
        sql = statements()[name]
        parameters = dict.fromkeys(re.findall(r":([a-z_]+)", sql))
        steps = [row["detail"] for row in book.connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
        if walked := [step for step in steps if re.match(r"SCAN (tasks|leases|reports|events|order_numbers)$", step)]:
            walking[name] = walked
    # Lists walk backwards from where the page begins and stop when it is full; counts are for people.
    assert {name for name in walking if not name.startswith("tasks_slice")} == set()
