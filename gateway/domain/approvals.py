"""What a second person decides about an order before it is handed out (docs/specification.md#approval)."""

import hashlib
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

HELD_FOR_APPROVAL: Final = "9999-12-31T23:59:59.999999Z"
"""`held_until` of a queued task that waits for its approval: no time releases it."""

MAX_APPROVAL_VALID: Final = timedelta(days=365)


class ApprovalReason(StrEnum):
    """Why an order needs an approval: its upstream asked for it, or a rule of the gateway."""

    REQUESTED = "requested"
    OVER_YEN = "over_yen"
    ALWAYS = "always"
    SAME_INTENT = "same_intent"

    @property
    def words(self) -> str:
        """Say it to a person."""
        return _WORDS[self]


_WORDS: Final = {
    ApprovalReason.REQUESTED: "its upstream asks for it",
    ApprovalReason.OVER_YEN: "it may cost more than RAKUTEN_APPROVAL_OVER_YEN",
    ApprovalReason.ALWAYS: "every order of its site needs one",
    ApprovalReason.SAME_INTENT: "another task wants the same",
}


class Verdict(StrEnum):
    """What was decided."""

    APPROVED = "approved"
    DENIED = "denied"


@dataclass(frozen=True, slots=True)
class Approval:
    """A decision about one task. Times are UTC text; `intent_sha256` is of the task's intent as it is stored.

    `max_total_yen` and `valid_until` None: denied. `used_by_lease`: number of the lease whose permit used it.
    `ended_at` None: it stands, and a permit may use it until `valid_until`.
    """

    task_id: str
    number: int
    verdict: Verdict
    decided_by: str
    decided_at: str
    reason: str
    intent_sha256: str
    max_total_yen: int | None
    valid_until: str | None
    used_by_lease: int | None
    ended_at: str | None

    def has_run_out(self, utc: str) -> bool:
        """Tell whether its time is over: at `valid_until` itself it is not."""
        return self.valid_until is not None and utc > self.valid_until


@dataclass(frozen=True, slots=True)
class Consent:
    """What a person agrees to. `max_total_yen` None: the task's cap. `valid_for` None: as the settings say."""

    task_id: str
    reason: str
    max_total_yen: int | None = None
    valid_for: timedelta | None = None


def intent_sha256(intent_json: str) -> str:
    """Return what binds an approval to an intent: the digest of the text that is stored and never changes."""
    return hashlib.sha256(intent_json.encode()).hexdigest()
