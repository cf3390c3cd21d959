"""Tokens as they are configured: a secret alone, or `name=secret`, where the name says in the history who it was."""

import re
from typing import Final

_NAMED: Final = re.compile(r"([a-z][a-z0-9_-]{0,31})=([!-~]{16,})")
_LOOKS_NAMED: Final = re.compile(r"[a-z][a-z0-9_-]*=[^=].*")

RESERVED: Final = frozenset({"gateway", "anonymous", "api", "upstream", "worker", "operator", "viewer"})
"""Names that stand in the history for the gateway itself and for tokens without a name."""


def split_token(text: str) -> tuple[str | None, str]:
    """Return the name and the secret. A short secret is none, so that the `=` of Base64 is never taken for a name."""
    named = _NAMED.fullmatch(text)
    return (None, text) if named is None else (named[1], named[2])


def looks_named(text: str) -> bool:
    """Tell whether a token seems to be meant as `name=secret`, but is taken whole."""
    return split_token(text)[0] is None and _LOOKS_NAMED.fullmatch(text) is not None
