"""When two addresses are those of the same page."""

import re
from urllib.parse import urlsplit, urlunsplit

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_UNRESERVED = re.compile(r"[A-Za-z0-9._~-]")


def same_page(url: str) -> str:
    """Return a URL in the form in which two of the same item are equal (RFC 3986, section 6.2.2).

    Host in lower case, nothing escaped that need not be, no fragment, no final slash.
    """
    parts = urlsplit(url)
    path, query = unescaped(parts.path).rstrip("/"), unescaped(parts.query)
    return urlunsplit((parts.scheme.lower(), parts.netloc.lower(), path, query, ""))


def unescaped(text: str) -> str:
    """Return a path or query in which nothing is escaped that need not be (RFC 3986, section 6.2.2.2)."""

    def plain(escape: re.Match[str]) -> str:
        character = chr(int(escape[1], 16))
        return character if _UNRESERVED.fullmatch(character) else escape[0].upper()

    return _ESCAPE.sub(plain, text)
