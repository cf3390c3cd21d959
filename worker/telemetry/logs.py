"""Log lines for people (`key=value`) or for machines (one JSON object a line), with the fields named at the call.

Fields travel as `extra={"task_id": …}`. Whatever a text from outside holds, it stays within its line. Tokens are never
passed to the log; nothing here could strip them out again.
"""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, Literal

from common.escapes import escape_controls

LogFormat = Literal["text", "json"]

_OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _OWN_ATTRIBUTES}


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """Write a traceback, each line set in: what an exception says cannot look like a line of the log."""
    lines = formatter.formatException(record.exc_info).split("\n") if record.exc_info else []
    return "".join(f"\n    {escape_controls(line)}" for line in lines)


class TextFormatter(logging.Formatter):
    """`time LEVEL message key=value …`; a value with spaces or quotes is written as JSON text."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        parts = [_time(record), f"{record.levelname:7}", record.getMessage()]
        for name, value in _fields(record).items():
            text = str(value)
            plain = text and all(character.isprintable() and character not in ' "=' for character in text)
            parts.append(f"{name}={text if plain else json.dumps(text, ensure_ascii=False)}")
        return escape_controls(" ".join(parts)) + _traceback(self, record)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the fields, and the traceback where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """See logging.Formatter."""
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return escape_controls(json.dumps(line, ensure_ascii=False, default=str))


def configure_logging(log_format: LogFormat, level: str) -> None:
    """Sends the worker's log to standard error, in that format, from that level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if log_format == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("worker").setLevel(level)
    # It tells of an answer that is no message with a traceback; whoever asked tells it in a line (gateway/answers.py).
    logging.getLogger("grpc._common").setLevel(logging.CRITICAL)
