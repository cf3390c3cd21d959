"""What stands in the tables: the contract's words, times and durations; and its JSON form for scripts."""

import sys
from collections.abc import Iterable
from datetime import UTC
from typing import Any, Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.text import Text

from common.output import print_json
from gateway.spreadsheets.words import name_of

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


def progress_console() -> Console:
    """Return the console for progress, which never mixes with the output."""
    return Console(file=sys.stderr)


def as_json(message: Message) -> dict[str, Any]:
    """Return a message in the JSON form of the contract, field names as in the proto files."""
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def list_as_json(name: str, messages: Iterable[Message]) -> None:
    """Print messages as an object with one array."""
    print_json({name: [as_json(message) for message in messages]})


def word(enum: Any, number: int) -> Text:
    """Return an enum's value as a word, coloured where a person should look; unspecified is empty."""
    text = name_of(enum, number)
    return Text(text, style=_COLOURS.get(text, ""))


def number_of(enum: Any, word: str | None) -> Any:
    """Return the enum's value that a word stands for (see name_of); None is unspecified."""
    return 0 if word is None else next(number for number in enum.values() if name_of(enum, number) == word)


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
