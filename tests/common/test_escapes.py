"""Texts from outside stay within their line, and nothing of them is there unseen."""

import json
import sys
import unicodedata

import pytest

from common.escapes import escape_controls, replace_controls
from common.output import plain

UNSEEN = "\u200b\u2060\ufeff\u180e\u034f\u00ad\u200d\ufe0f\u3164\u115f\U000e0041\U000e0100\U0001d173\ufff0"


@pytest.mark.parametrize("character", UNSEEN, ids=ascii)
def test_what_is_not_drawn_is_escaped(character: str) -> None:
    escaped = escape_controls(f"a{character}b")
    assert escaped.isascii()
    assert json.loads(f'"{escaped}"') == f"a{character}b"
    assert plain(f"a{character}b").plain == replace_controls(f"a{character}b") == "a\ufffdb"


def test_every_control_and_format_character_is_escaped_and_no_letter() -> None:
    for character in map(chr, range(sys.maxunicode + 1)):
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            assert escape_controls(character).isascii(), ascii(character)
    shown = "注文 12,800円 é ﾊﾝｶｸ 😀 𠮷 e\u0301"
    assert escape_controls(shown) == replace_controls(shown) == shown


def test_json_stays_the_same_json() -> None:
    value = {"detail": f"x\n{UNSEEN}\U0001f600\x1b"}
    escaped = escape_controls(json.dumps(value, ensure_ascii=False))
    assert json.loads(escaped) == value
    assert not set(UNSEEN) & set(escaped)
