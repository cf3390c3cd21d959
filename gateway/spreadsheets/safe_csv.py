"""Tables as CSV that is safe to open in a spreadsheet."""

import csv
import io
from collections.abc import Iterable
from typing import IO, Final

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""How a cell begins that a spreadsheet would calculate, or that hides such a beginning."""


def write_csv(file: IO[str], columns: Iterable[str] | None, rows: Iterable[Iterable[str]]) -> None:
    """Write a heading and rows, each when it comes; without `columns` the rows alone."""
    writer = csv.writer(file, lineterminator="\r\n")
    if columns is not None:
        writer.writerow(columns)
    for row in rows:
        writer.writerow([_safe(cell) for cell in row])


def csv_text(columns: Iterable[str] | None, rows: Iterable[Iterable[str]]) -> str:
    """Return what write_csv writes."""
    text = io.StringIO(newline="")
    write_csv(text, columns, rows)
    return text.getvalue()


def _safe(cell: str) -> str:
    """Return a cell that no spreadsheet calculates (OWASP, CSV injection); a NUL, which none takes, is dropped."""
    cell = cell.replace("\0", "")
    return f"'{cell}" if cell.startswith(_FORMULA) else cell
