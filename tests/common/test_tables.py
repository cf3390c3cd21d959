"""Tables fit the terminal, and no value that a person copies is broken."""

import pytest
from rich.cells import cell_len
from rich.text import Text

from common.tables import field_lines, table_lines

COLUMNS = ("task", "site", "status", "order number", "held by", "updated", "detail")
ROW = (
    "po-2026-11-29-a-rather-long-key-0001",
    "rakuten",
    "needs_human",
    "250718-20261129-0123456789",
    "",
    "2026-11-29 15:58:22Z",
    "the amount on the confirmation page is above the limit of 30000 yen",
)
SHORT = ("po-2", "rakuten", "queued", "", "", "2026-11-29 15:58:23Z", "")


def shown(room: int | None, *rows: tuple[str, ...]) -> list[str]:
    return [line.plain for line in table_lines(COLUMNS, [[Text(cell) for cell in row] for row in rows], room)]


@pytest.mark.parametrize("room", [55, 80, 100, 120, 160, 200, None])
def test_no_word_id_or_time_is_broken_at_any_width(room: int | None) -> None:
    lines = shown(room, ROW, SHORT)
    text = "\n".join(lines)
    for value in (*ROW[:6], *ROW[6].split(), *SHORT[:3]):
        assert value in text
    if room is not None:
        assert max(map(cell_len, lines)) <= room


def test_a_column_that_holds_nothing_goes_first() -> None:
    assert "held by" in shown(220, ROW)[0]
    narrow = shown(180, ROW)
    assert "held by" not in narrow[0]
    assert ROW[6] in narrow[1], "nothing had to be wrapped"


def test_where_no_table_fits_each_row_is_a_list_of_fields() -> None:
    lines = shown(60, ROW, SHORT)
    assert lines[0] == f"task          {ROW[0]}"
    assert lines[lines.index("") + 1] == "task     po-2"
    assert "held by" not in "\n".join(lines)


def test_a_pipe_gets_one_line_a_row_and_every_column() -> None:
    head, row = shown(None, (*ROW[:6], "two\nlines " + "x" * 500))
    assert head.split() == ["task", "site", "status", "order", "number", "held", "by", "updated", "detail"]
    assert row.endswith("two lines " + "x" * 500)


def test_a_word_longer_than_the_terminal_is_left_to_the_terminal() -> None:
    key = "k" * 100
    assert [line.plain for line in field_lines([("task", Text(key)), ("site", Text(""))], 40)] == [f"task  {key}"]


def test_wide_characters_count_twice() -> None:
    lines = [line.plain for line in table_lines(("a", "b"), [[Text("品切れ"), Text("x")]], 80)]
    assert lines == ["a       b", "品切れ  x"]


def test_colours_stay_with_their_words() -> None:
    (line,) = list(table_lines(("status",), [[Text("stale", "yellow")]], 80))[1:]
    assert [(line.plain[span.start : span.end], span.style) for span in line.spans] == [("stale", "yellow")]
