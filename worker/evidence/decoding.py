"""The text of a page that was kept as bytes."""

import re
from contextlib import suppress
from typing import Final

_CHARSET: Final = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([A-Za-z0-9_-]{1,40})""", re.IGNORECASE)
_CHARSET_WITHIN_BYTES: Final = 4096


def decode_html(html: bytes) -> str:
    """Return the page as text, by the charset that it names itself, else UTF-8; what cannot be decoded is replaced."""
    named = _CHARSET.search(html[:_CHARSET_WITHIN_BYTES])
    with suppress(LookupError):
        return html.decode(named[1].decode("ascii") if named else "utf-8", errors="replace")
    return html.decode("utf-8", errors="replace")
