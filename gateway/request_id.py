"""The name of the call being served, so that log lines of one call can be found: the caller's own, or one made here."""

import random
import re
from contextvars import ContextVar
from typing import Final

HEADER: Final = "x-request-id"
"""Header or gRPC metadata in which a caller may send its own name of the call; over HTTP it is answered too."""

_FORM: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_current: ContextVar[str] = ContextVar("request_id", default="")


def begin_request(told: str | None) -> str:
    """Name the call that begins, by what the caller sent if that is well formed, and return the name."""
    name = told if told and _FORM.fullmatch(told) else f"{random.getrandbits(64):016x}"
    _current.set(name)
    return name


def current_request_id() -> str:
    """Return the name of the call being served; "" outside of one."""
    return _current.get()
