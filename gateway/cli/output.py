"""What commands print: tables for people, the contract's JSON form for scripts."""

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC
from typing import Any, Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_WIDTH_WITHOUT_A_TERMINAL: Final = 200
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400

_COLOURS: Final = {
    "succeeded": "green",
    "failed": "red",
    "needs_human": "yellow",
    "stale": "yellow",
    "certain": "red",
    "possible": "yellow",
    "impossible": "green",
    "given_up": "red",
    "degraded": "yellow",
    "ok": "green",
}


def console() -> Console:
    """Return the console of standard output; where it is no terminal, wide enough that tables keep their rows."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_A_TERMINAL, highlight=False)


def progress_console() -> Console:
    """Return the console for progress, which never mixes with the output."""
    return Console(file=sys.stderr)


def print_json(value: Any) -> None:
    """Print a JSON value, indented."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """Print a JSON value on one line, at once."""
    sys.stdout.write(json.dumps(value, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def as_json(message: Message) -> dict[str, Any]:
    """Return a message in the JSON form of the contract, field names as in the proto files."""
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def list_as_json(name: str, messages: Iterable[Message]) -> None:
    """Print messages as an object with one array."""
    print_json({name: [as_json(message) for message in messages]})


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], empty: str) -> None:
    """Print a table, or a sentence where there is nothing to show."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(plain(cell) if isinstance(cell, str) else cell for cell in row))
    if table.row_count:
        console().print(table)
    else:
        console().print(Text(empty))


def print_fields(fields: Iterable[tuple[str, str | Text]]) -> None:
    """Print names with their values, leaving out what is empty."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in fields:
        if value:
            table.add_row(Text(name), plain(value) if isinstance(value, str) else value)
    console().print(table)


def plain(text: str) -> Text:
    """Return a text from outside as it is shown: no markup, and nothing that could steer the terminal."""
    return Text("".join(character if character.isprintable() or character == "\n" else "�" for character in text))


def word(enum: Any, number: int) -> Text:
    """Return an enum's value as a word, coloured where a person should look; unspecified is empty."""
    text = name_of(enum, number)
    return Text(text, style=_COLOURS.get(text, ""))


def name_of(enum: Any, number: int) -> str:
    """Return an enum's value as a word: TASK_STATUS_STALE is `stale`; unspecified is empty."""
    values = enum.DESCRIPTOR.values_by_number
    if not number:
        return ""
    if number not in values:
        return str(number)
    prefix = values[0].name.removesuffix("UNSPECIFIED")
    return str(values[number].name).removeprefix(prefix).lower()


def when(message: Message, field: str) -> str:
    """Return the time in a field, in UTC to the second; empty where it is absent."""
    if not message.HasField(field):
        return ""
    value: Timestamp = getattr(message, field)
    return f"{value.ToDatetime(UTC):%Y-%m-%d %H:%M:%S}Z"


def span(duration: Duration) -> str:
    """Return a duration in the unit that fits."""
    seconds = max(0, round(duration.ToTimedelta().total_seconds()))
    if seconds < _MINUTE * 2:
        return f"{seconds} s"
    if seconds < _HOUR * 2:
        return f"{seconds // _MINUTE} min"
    return f"{seconds // _HOUR} h" if seconds < _DAY * 2 else f"{seconds // _DAY} d"
