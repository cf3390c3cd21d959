"""Tables and lists of fields that fit the terminal, in which no id, number or time is ever broken.

A table that is too wide loses its empty columns first; then texts are wrapped between words; then each row becomes a
list of fields. A pipe or a file gets one line a row.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from rich.cells import cell_len
from rich.text import Text

from common.output import plain, print_line, say, width
from common.wrapping import longest_word, wrapped

Cell: TypeAlias = str | Text

_GAP: Final = 2
_WHOLE: Final = 24
"""A value of so many cells is a name, a number or a time, and stays on one line; a longer one may be a sentence."""


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]], empty: str) -> None:
    """Print a table, or a sentence where there is nothing to show."""
    cells = [[_text(cell) for cell in row] for row in rows]
    if not cells:
        say(empty)
        return
    for line in table_lines(columns, cells, width()):
        print_line(line)


def print_fields(fields: Iterable[tuple[str, Cell]]) -> None:
    """Print names with their values, leaving out what is empty."""
    for line in field_lines([(name, _text(value)) for name, value in fields], width()):
        print_line(line)


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[Text]], room: int | None) -> Iterator[Text]:
    """Yield the lines of a table for a terminal of `room` cells; None: for no terminal."""
    if room is None:
        rows = [[_one_line(cell) for cell in row] for row in rows]
        yield from _laid_out(columns, rows, _natural(columns, rows))
        return
    if sum(_natural(columns, rows)) + _GAP * (len(columns) - 1) > room:
        kept = [index for index in range(len(columns)) if any(row[index].plain for row in rows)]
        columns, rows = [columns[index] for index in kept], [[row[index] for index in kept] for row in rows]
    widths = _fitted(columns, rows, room - _GAP * (len(columns) - 1))
    if widths is not None:
        yield from _laid_out(columns, rows, widths)
        return
    for number, row in enumerate(rows):
        if number:
            yield Text()
        yield from field_lines(list(zip(columns, row, strict=True)), room)


def field_lines(fields: Sequence[tuple[str, Text]], room: int | None) -> Iterator[Text]:
    """Yield a line or more for each field that is not empty; a word that is too long is left to the terminal."""
    fields = [(name, value) for name, value in fields if value.plain]
    left = max((cell_len(name) for name, _ in fields), default=0) + _GAP
    for name, value in fields:
        lines = [_one_line(value).plain] if room is None else [value.plain]
        if room is not None and longest_word(value.plain) <= room - left:
            lines = wrapped(value.plain, room - left)
        for number, line in enumerate(lines):
            heading = Text(_padded(name if number == 0 else "", left), "bold")
            yield heading.append_text(Text(line, value.style))


def _laid_out(columns: Sequence[str], rows: Sequence[Sequence[Text]], widths: Sequence[int]) -> Iterator[Text]:
    for row in ([Text(column, "bold") for column in columns], *rows):
        cells = [wrapped(cell.plain, room) for cell, room in zip(row, widths, strict=True)]
        for number in range(max(map(len, cells))):
            line = Text()
            for lines, cell, room in zip(cells, row, widths, strict=True):
                words = lines[number] if number < len(lines) else ""
                line.append(words, cell.style).append(" " * (room - cell_len(words) + _GAP))
            line.rstrip()
            yield line


def _natural(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> list[int]:
    """The widths at which nothing is wrapped."""
    return [max(cell_len(line) for cell in cells for line in cell.split("\n")) for cells in _by_column(columns, rows)]


def _fitted(columns: Sequence[str], rows: Sequence[Sequence[Text]], room: int) -> list[int] | None:
    """The widths at which the table fits, the widest columns narrowed first; None where it cannot."""
    least = [max(map(_least, cells)) for cells in _by_column(columns, rows)]
    if sum(least) > room:
        return None
    widths = _natural(columns, rows)
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda index: widths[index] if widths[index] > least[index] else 0)
        widths[widest] -= 1
    return widths


def _by_column(columns: Sequence[str], rows: Sequence[Sequence[Text]]) -> list[list[str]]:
    return [[column, *(row[index].plain for row in rows)] for index, column in enumerate(columns)]


def _least(value: str) -> int:
    cells = cell_len(value)
    return cells if cells <= _WHOLE and "\n" not in value else longest_word(value)


def _text(cell: Cell) -> Text:
    return plain(cell) if isinstance(cell, str) else cell


def _one_line(cell: Text) -> Text:
    return Text(" ".join(cell.plain.splitlines()), cell.style)


def _padded(text: str, cells: int) -> str:
    return text + " " * (cells - cell_len(text))
