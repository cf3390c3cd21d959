"""Callbacks: what is told to upstreams, where to, and where the telling stands (docs/specification.md#callbacks)."""

import re
from base64 import b64decode
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_SECRET: Final = re.compile(r"(whsec_)?[A-Za-z0-9+/]+={0,2}", re.ASCII)
_SECRET_BYTES: Final = range(24, 65)


class CallbackStatus(StrEnum):
    """Where a callback stands."""

    PENDING = "pending"
    DELIVERED = "delivered"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Callback:
    """A callback in the outbox. `row` orders callbacks; `task_id` is None for a test.

    `since_us` is when its delivery began, the last time, by the service clock.
    """

    row: int
    callback_id: str
    task_id: str | None
    url: str
    endpoint: str
    type: str
    status: CallbackStatus
    attempts: int
    created_at: str
    since_us: int
    next_attempt_at: str | None
    last_result: str


@dataclass(frozen=True, slots=True)
class DueCallback:
    """A callback that is due, with what its body is made of. `intent_json` is None for a test."""

    callback: Callback
    data_json: str
    intent_json: str | None


@dataclass(frozen=True, slots=True)
class Delivery:
    """A callback that is due: the body is the same on each try. `tried_at` is the time of this try, UTC text."""

    callback_id: str
    task_id: str | None
    url: str
    endpoint: str
    body: str
    attempts: int
    tried_at: str


def endpoint_of(url: str) -> str:
    """Return scheme, host and port of a checked URL. It may be logged; the URL, which may hold a key, may not."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}"


def is_signing_secret(text: str) -> bool:
    """Tell whether a text is a secret as Standard Webhooks has it: 24 to 64 bytes in Base64, `whsec_` before or not."""
    if not _SECRET.fullmatch(text):
        return False
    encoded = text.removeprefix("whsec_").rstrip("=")
    try:
        return len(b64decode(encoded + "=" * (-len(encoded) % 4))) in _SECRET_BYTES
    except ValueError:
        return False
