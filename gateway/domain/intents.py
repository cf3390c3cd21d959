"""What stands for an intent (docs/specification.md#submission): equal for equal values, in whatever order keys stand.

The values are those that `json_text` has parsed; the length of the text tells how long it takes to write them anew.
"""

import hashlib
from typing import Any, Final

from gateway.domain.json_text import canonical, canonical_text, parse_again

_SMALL: Final = 16_384
"""Characters of an intent that is written anew in a few milliseconds."""


def intent_digest(intent_json: str) -> str:
    """Return what stands for an intent once its text is dropped."""
    return _digest("", parse_again(intent_json), len(intent_json))


def intent_key(site: str, account: str, intent: dict[str, Any], length: int) -> str:
    """Return what is equal for two submissions that want the same: of one site, one account, and an equal intent."""
    return _digest(f"{site}\n{account}\n", intent, length)


def _digest(before: str, intent: dict[str, Any], length: int) -> str:
    if length <= _SMALL:
        return hashlib.sha256(f"{before}{canonical_text(intent)}".encode("ascii")).hexdigest()
    digest = hashlib.sha256(before.encode("ascii"))
    for part in canonical(intent):
        digest.update(part.encode("ascii"))
    return digest.hexdigest()
