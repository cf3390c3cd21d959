"""Standard output: plain text for a pipe or a file, and no traceback where it is closed or full."""

import errno
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from common.escapes import escape_lines, replace_controls
from common.wrapping import wrapped


class _Output(io.FileIO):
    """Remembers why it could not be written."""

    error: OSError | None = None

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.error = error
            raise


@contextmanager
def standard_output(program: str) -> Iterator[None]:
    """Run a program's command line, and end it with exit code 1 if what it printed could not be written.

    A reader that has seen enough (`| head`) is told nothing; a full disk is one line on standard error.
    """
    if sys.stdout is None:  # it was closed before the start; whatever is opened next must not take its place
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - for the life of the process
    before, raw = sys.stdout, _Output(sys.stdout.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), before.encoding, errors="backslashreplace", line_buffering=before.isatty()
    )
    try:
        yield
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
        if raw.error is not None:
            # What is left in the buffer is tried once more at the interpreter's end, and must find a way out.
            os.dup2(os.open(os.devnull, os.O_WRONLY), raw.fileno())
            if raw.error.errno != errno.EPIPE:
                sys.stderr.write(f"{program}: standard output cannot be written ({raw.error.strerror})\n")
            raise SystemExit(1)


def width() -> int | None:
    """Return the terminal's width in cells; None where standard output is no terminal, and lines are never wrapped."""
    return console().width if sys.stdout.isatty() else None


def console() -> Console:
    """Return the console of standard output. Lines are wrapped before they come here, or by the terminal itself."""
    return Console(file=sys.stdout, force_terminal=sys.stdout.isatty(), highlight=False, soft_wrap=True)


def say(text: str | Text) -> None:
    """Print a sentence, wrapped between words."""
    shown = plain(text) if isinstance(text, str) else text
    room = width()
    for line in [shown.plain] if room is None else wrapped(shown.plain, room):
        print_line(Text(line, shown.style))


def print_line(line: str | Text = "") -> None:
    """Print a line as it is."""
    console().print(plain(line) if isinstance(line, str) else line)


def print_json(value: Any) -> None:
    """Print a JSON value, indented."""
    sys.stdout.write(escape_lines(json.dumps(value, ensure_ascii=False, indent=2)) + "\n")


def print_json_line(value: Any) -> None:
    """Print a JSON value on one line, at once."""
    sys.stdout.write(escape_lines(json_line(value)) + "\n")
    sys.stdout.flush()


def json_line(value: Any) -> str:
    """Return a JSON value on one line."""
    return json.dumps(value, ensure_ascii=False)


def plain(text: str) -> Text:
    """Return a text from outside as it is shown: no markup, nothing that steers the terminal or is not drawn."""
    printable = "".join(character if character.isprintable() or character == "\n" else "\ufffd" for character in text)
    return Text(replace_controls(printable))
