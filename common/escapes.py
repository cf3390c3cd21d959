"""Texts from outside, written so that they stay within their line: in logs, in JSON and on a terminal."""

import re
from typing import Final

_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape_controls(text: str) -> str:
    """Return a text in which nothing can end a line, steer a terminal or turn the order of letters round.

    C0 and C1 controls, the line separators U+2028 and U+2029, the marks of bidirectional text and lone surrogates are
    written as JSON escapes. Within a JSON text they stand in strings alone, so it stays the same JSON.
    """
    return _CONTROLS.sub(lambda found: _SHORT.get(found[0], f"\\u{ord(found[0]):04x}"), text)


def escape_lines(text: str) -> str:
    """Return a text of several lines of our own, each escaped."""
    return "\n".join(map(escape_controls, text.split("\n")))
