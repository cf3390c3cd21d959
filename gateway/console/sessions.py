"""Who is signed in: a cookie that only the holder of a token can have got (docs/console.md#signing-in).

A session is not kept anywhere: its cookie carries when it ends and a mark that was made with the token, so it holds at
every gateway that knows the token and over restarts, and ends by time and with the token. What was signed out is
remembered until it would have ended by itself.
"""

import asyncio
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import OPEN, Identity
from gateway.domain.instant import parse_utc
from gateway.domain.refusals import Reason, Refusal, RefusedError

MAX_TOKEN_CHARACTERS: Final = 1_024

MAX_SIGNED_OUT: Final = 10_000
"""How many signed-out sessions are remembered; beyond that those that would end first are forgotten."""

_ATTEMPTS_AT_ONCE: Final = 4
_MAX_WAITING: Final = 64
_WRONG_SECONDS: Final = 1.0
"""How long a wrong token keeps its place, so that all who guess together get four tries a second."""

_COOKIE: Final = re.compile(r"([0-9]{1,12})\.([A-Za-z0-9_-]{16,64})\.([0-9a-f]{64})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Session:
    """Who looks. `csrf`: what its forms must bring. `ends_at` None: nobody signed in, since no token is configured."""

    identity: Identity
    csrf: str
    ends_at: datetime | None


class Sessions:
    """Opens, finds and ends sessions. `wall_utc` reads the wall clock, `new_id` makes what nobody can guess."""

    def __init__(
        self, admission: Admission, wall_utc: Callable[[], str], new_id: Callable[[], str], lasts: timedelta
    ) -> None:
        self._admission = admission
        self._wall_utc = wall_utc
        self._new_id = new_id
        self._lasts = lasts
        self._signed_out: dict[str, int] = {}
        self._attempts = asyncio.Semaphore(_ATTEMPTS_AT_ONCE)
        self._waiting = 0
        self._without_token = Session(OPEN, new_id(), None)

    async def sign_in(self, token: str) -> str:
        """Return the cookie of a new session. Raises RefusedError UNAUTHENTICATED, or TOO_MANY."""
        try:
            self._admission.identify(f"Bearer {token[:MAX_TOKEN_CHARACTERS]}")
        except RefusedError:
            await self._hold_back()
            raise
        begins = f"{int((self._now() + self._lasts).timestamp())}.{self._new_id()}"
        return f"{begins}.{_mark(token.encode(), begins)}"

    async def _hold_back(self) -> None:
        """Let a wrong token wait for its place and keep it; a right one never waits. Raises RefusedError TOO_MANY."""
        if self._waiting >= _MAX_WAITING:
            why = "too many wrong tokens are tried at the same time; try again"
            raise RefusedError(Refusal(Reason.TOO_MANY, why, retry_after=timedelta(seconds=1)))
        self._waiting += 1
        try:
            async with self._attempts:
                await asyncio.sleep(_WRONG_SECONDS)
        finally:
            self._waiting -= 1

    def find(self, cookie: str | None) -> Session | None:
        """Return the session of a cookie; None where it has ended, or is none."""
        if self._admission.is_open:
            return self._without_token
        told = _COOKIE.fullmatch(cookie or "")
        if told is None or told[2] in self._signed_out or int(told[1]) <= self._now().timestamp():
            return None
        begins, mark = f"{told[1]}.{told[2]}", told[3]
        identity = self._admission.owner(lambda secret: hmac.compare_digest(_mark(secret, begins), mark))
        if identity is None:
            return None
        return Session(identity, _mark(mark.encode(), "form"), datetime.fromtimestamp(int(told[1]), UTC))

    def sign_out(self, cookie: str | None) -> None:
        """End a session."""
        told = _COOKIE.fullmatch(cookie or "")
        if told is None or self.find(cookie) is None:
            return
        now = self._now().timestamp()
        kept = sorted(((ends, name) for name, ends in self._signed_out.items() if ends > now), reverse=True)
        self._signed_out = {name: ends for ends, name in kept[: MAX_SIGNED_OUT - 1]} | {told[2]: int(told[1])}

    def _now(self) -> datetime:
        return parse_utc(self._wall_utc())


def _mark(secret: bytes, text: str) -> str:
    return hmac.new(secret, f"order-gateway console: {text}".encode(), hashlib.sha256).hexdigest()
