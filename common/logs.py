"""Log lines: for people (`message key=value`), or one JSON object each. Fields travel as `extra={"task_id": …}`.

Whatever a text from outside holds, it stays within its line. Tokens are never passed to the log; nothing here could
strip them again.
"""

import json
import logging
import sys
import time
from typing import Any, Final, Literal

from common.escapes import escape_controls

LogFormat = Literal["text", "json"]

_OWN_ATTRIBUTES: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class TextFormatter(logging.Formatter):
    """Writes a record as time, level, message, fields; a value with spaces or quotes is written as JSON text."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        parts = [_time(record), f"{record.levelname:7}", record.getMessage()]
        for name, value in _fields(record).items():
            text = str(value)
            plain = text and all(character.isprintable() and character not in ' "=' for character in text)
            parts.append(f"{name}={text if plain else json.dumps(text, ensure_ascii=False)}")
        return escape_controls(" ".join(parts)) + _traceback(self, record)


class JsonFormatter(logging.Formatter):
    """Writes a record as one JSON object: time, level, logger, message, fields, and the traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        entry = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return escape_controls(json.dumps(entry, ensure_ascii=False, default=str))


def log_handler(style: LogFormat) -> logging.Handler:
    """Return a handler that writes to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    return handler


def _traceback(formatter: logging.Formatter, record: logging.LogRecord) -> str:
    """Write a traceback, each line set in: what an exception says cannot look like a line of the log."""
    lines = formatter.formatException(record.exc_info).split("\n") if record.exc_info else []
    return "".join(f"\n    {escape_controls(line)}" for line in lines)


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    return {name: value for name, value in vars(record).items() if name not in _OWN_ATTRIBUTES}


def _time(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"
