"""Texts from outside, written so that they stay within their line: in logs, in JSON and on a terminal."""

import re
from typing import Final

_CONTROLS: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
    # Of category Cf: marks of bidirectional text, and what else is there but has no shape.
    r"\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufeff\ufff9-\ufffb"
    r"\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    # Of other categories, and not drawn by default (Default_Ignorable_Code_Point): joiners, fillers, selectors, tags.
    r"\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\ufff0-\ufff8\U000e0000-\U000e0fff]"
)
_LAST_OF_ONE_UNIT: Final = 0xFFFF
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def escape_controls(text: str) -> str:
    """Return a text in which nothing can end a line, steer a terminal, turn letters round or be there unseen.

    C0 and C1 controls, the line separators U+2028 and U+2029, the marks of bidirectional text, everything else that is
    not drawn and lone surrogates are written as JSON escapes. Within a JSON text they stand in strings alone, so it
    stays the same JSON.
    """
    return _CONTROLS.sub(lambda found: _SHORT.get(found[0]) or _escape(ord(found[0])), text)


def replace_controls(text: str) -> str:
    """Return a text with U+FFFD in place of each character that `escape_controls` escapes, but for line ends."""
    return _CONTROLS.sub(lambda found: "\n" if found[0] == "\n" else "\ufffd", text)


def _escape(code: int) -> str:
    """Return the escape of JSON, a pair of surrogates beyond U+FFFF."""
    if code <= _LAST_OF_ONE_UNIT:
        return f"\\u{code:04x}"
    high, low = divmod(code - _LAST_OF_ONE_UNIT - 1, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def escape_lines(text: str) -> str:
    """Return a text of several lines of our own, each escaped."""
    return "\n".join(map(escape_controls, text.split("\n")))
