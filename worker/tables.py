"""What the commands print for people: tables of which nothing is cut off, times in one form."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH_WITHOUT_A_TERMINAL = 10_000


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table. A terminal gets long values folded; a pipe or a file gets one line a row."""
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_plain("" if value is None else str(value)) for value in row))
    console = Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_A_TERMINAL)
    with console.capture() as printed:
        console.print(table)
    for line in printed.get().splitlines():
        sys.stdout.write(line.rstrip() + "\n")


def short_time(text: str) -> str:
    """A moment as `utc_text` wrote it, to the second: `2026-07-27 09:15:00Z`."""
    return f"{text[:10]} {text[11:19]}Z"


def _plain(text: str) -> Text:
    """No markup, and nothing that could steer the terminal."""
    return Text("".join(character if character.isprintable() or character == "\n" else "\ufffd" for character in text))
