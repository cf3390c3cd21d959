"""Callbacks of the gateway: who sent them, and what they say (docs/callbacks.md of the project).

The signature is that of Standard Webhooks: HMAC-SHA256 of id, time and body.
"""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

TOLERANCE_SECONDS: Final = 300
"""How old a callback may be, or how far ahead; an older one may have been recorded and sent by somebody else."""

_PREFIX: Final = "whsec_"


class CallbackError(Exception):
    """What came is not a callback of the gateway that has this secret, or is too old. Answer it with 400."""


@dataclass(frozen=True, slots=True)
class Callback:
    """A callback. The same `id` may come again, since an answer may be lost.

    `type` is for example `order.succeeded`; `timestamp` RFC 3339; `data` the task as `GET /api/orders/{task_id}` shows
    it.
    """

    id: str
    type: str
    timestamp: str
    data: Mapping[str, Any]


def verify_callback(
    secret: str | Iterable[str], headers: Mapping[str, str], body: bytes, *, now: float | None = None
) -> Callback:
    """Check a callback and return what it says.

    `secret`: RAKUTEN_CALLBACK_SECRET of the gateway, or several of them while they rotate. `headers`: of the request,
    their names in any case. `body`: the bytes as they came. `now`: seconds since 1970; default: this machine's clock.
    Raises CallbackError, and ValueError for a secret that is none.
    """
    found = {name.lower(): value for name, value in headers.items()}
    try:
        message_id, sent_at, signatures = (found[f"webhook-{name}"] for name in ("id", "timestamp", "signature"))
        age = (time.time() if now is None else now) - int(sent_at)
    except (KeyError, ValueError):
        raise CallbackError("the headers webhook-id, webhook-timestamp and webhook-signature are not there") from None
    if abs(age) > TOLERANCE_SECONDS:
        raise CallbackError(f"the callback is {age:.0f} s old")
    signed = b".".join((message_id.encode(), sent_at.encode(), body))
    shown = [each.partition(",")[2] for each in signatures.split() if each.startswith("v1,")]
    secrets = [secret] if isinstance(secret, str) else secret
    expected = [_signature(_key(each), signed) for each in secrets]
    if not any(hmac.compare_digest(one.encode(), other.encode()) for one in shown for other in expected):
        raise CallbackError("no signature fits")
    try:
        told = json.loads(body)
        return Callback(message_id, told["type"], told["timestamp"], told["data"])
    except (ValueError, KeyError, TypeError):
        raise CallbackError("the body is not that of a callback") from None


def _key(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("the secret is not base64 behind whsec_") from None


def _signature(key: bytes, signed: bytes) -> str:
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
