"""The text of a page that was kept as bytes."""

import codecs
import re
from typing import Final

_CHARSET: Final = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([A-Za-z0-9_-]{1,40})""", re.IGNORECASE)
_CHARSET_WITHIN_BYTES: Final = 4096
_CODECS: Final = frozenset(
    {
        "big5", "big5hkscs", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258",
        "cp866", "cp874", "cp932", "cp949", "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso2022_jp", "iso8859-1",
        "iso8859-10", "iso8859-11", "iso8859-13", "iso8859-14", "iso8859-15", "iso8859-16", "iso8859-2", "iso8859-3",
        "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-9", "koi8-r", "koi8-u",
        "mac-cyrillic", "mac-roman", "shift_jis", "tis-620",
    }
)  # fmt: skip
"""Those that a browser knows, by Python's names. Others of Python's are no charsets: `undefined` and `idna` raise,
`unicode_escape` makes lone surrogates, `punycode` takes a time that grows with the square of the page."""


def decode_html(html: bytes) -> str:
    """Return the page as text, by the charset that it names itself, else UTF-8; what cannot be decoded is replaced."""
    named = _CHARSET.search(html[:_CHARSET_WITHIN_BYTES])
    return html.decode(_codec(named[1].decode("ascii")) if named else "utf-8", errors="replace")


def _codec(charset: str) -> str:
    try:
        name = codecs.lookup(charset).name
    except LookupError:
        return "utf-8"
    return name if name in _CODECS else "utf-8"
