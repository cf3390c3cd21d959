"""The text of a kept page, by the charset that it names."""

import encodings
import pkgutil

import pytest

from worker.evidence.decoding import decode_html


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<meta charset='euc-jp'>注文".encode("euc-jp"), "<meta charset='euc-jp'>注文"),
        ("<meta charset=nonsense>注文".encode(), "<meta charset=nonsense>注文"),
        ("注文".encode(), "注文"),
        (b"\xff", "\ufffd"),
        ("<meta charset='Shift_JIS'>注文".encode("shift_jis"), "<meta charset='Shift_JIS'>注文"),
        # As a browser: who could read this as ASCII has not read UTF-16.
        ("<meta charset=utf-16>注文".encode(), "<meta charset=utf-16>注文"),
    ],
)
def test_decoding(html: bytes, text: str) -> None:
    assert decode_html(html) == text


PYTHONS_OWN = ("undefined", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "mbcs", "rot13", "hex")


@pytest.mark.parametrize("charset", PYTHONS_OWN)
def test_a_codec_that_is_no_charset_is_not_used(charset: str) -> None:
    html = f"<meta charset={charset}>\\ud800 +2AA- 注文-" + "a" * 100
    assert decode_html(html.encode()) == html


def test_no_codec_of_python_raises_or_makes_what_cannot_be_written() -> None:
    for module in pkgutil.iter_modules(encodings.__path__):
        text = decode_html(f"<meta charset={module.name}>\\ud800 +2AA- 注文-".encode() + bytes(range(256)))
        assert text.encode().decode() == text, module.name
