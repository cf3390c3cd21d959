"""The text of a kept page, by the charset that it names."""

import pytest

from worker.evidence.decoding import decode_html


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<meta charset='euc-jp'>注文".encode("euc-jp"), "<meta charset='euc-jp'>注文"),
        ("<meta charset=nonsense>注文".encode(), "<meta charset=nonsense>注文"),
        ("注文".encode(), "注文"),
        (b"\xff", "\ufffd"),
    ],
)
def test_decoding(html: bytes, text: str) -> None:
    assert decode_html(html) == text
