"""The one sentence about an order: impossible, possible or certain, and why (docs/specification.md#placement).

It is kept apart from its words, so that a page can say it in the language of its reader.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class FindingKind(StrEnum):
    """What makes an order impossible, possible or certain."""

    REPORTED = "reported"
    REPORTED_WITH_NUMBER = "reported_with_number"
    REPORTED_LATE = "reported_late"
    REPORTED_LATE_WITH_NUMBER = "reported_late_with_number"
    IN_THE_HISTORY = "in_the_history"
    LEASE_ALLOWED = "lease_allowed"
    RESTORED = "restored"
    LEASED_OVER_REST = "leased_over_rest"
    PERMITTED = "permitted"
    NEVER_LEASED = "never_leased"
    NEVER_PERMITTED = "never_permitted"


ENGLISH: Final[Mapping[FindingKind, str]] = MappingProxyType(
    {
        FindingKind.REPORTED: "An order is certain: it was reported as {state} at {at}.",
        FindingKind.REPORTED_WITH_NUMBER: (
            "An order is certain: it was reported as {state} with the order number {number} at {at}."
        ),
        FindingKind.REPORTED_LATE: (
            "An order is certain: a late report of {worker} at {at}, refused but kept, says {state}."
        ),
        FindingKind.REPORTED_LATE_WITH_NUMBER: (
            "An order is certain: a late report of {worker} at {at}, refused but kept, says {state} with the order "
            "number {number}."
        ),
        FindingKind.IN_THE_HISTORY: "An order is certain: a report in the history says so.",
        FindingKind.LEASE_ALLOWED: (
            "An order is possible: a lease allowed the click, and nothing is known of what came of it."
        ),
        FindingKind.RESTORED: (
            "An order is possible: the gateway was restored at {at}, what happened since that backup was made is not "
            "known, and nothing is known of what came of it."
        ),
        FindingKind.LEASED_OVER_REST: (
            "An order is possible: lease {lease} was taken by {worker} over REST, where no permit guards the click, "
            "and nothing is known of what came of it."
        ),
        FindingKind.PERMITTED: (
            "An order is possible: a submit permit was granted to {worker} at {at} (lease {lease}), and nothing is "
            "known of what came of it."
        ),
        FindingKind.NEVER_LEASED: "An order is impossible: the task was never leased.",
        FindingKind.NEVER_PERMITTED: (
            "An order is impossible: no submit permit was ever granted, and without one no worker clicks (leases: "
            "{count}, the last one held by {worker})."
        ),
    }
)
"""The sentence of each kind; what stands in braces are the names of a finding's values."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What is known of an order, and from where. `values`: what the sentence names; times are UTC text."""

    kind: FindingKind
    values: Mapping[str, str]

    @property
    def sentence(self) -> str:
        """Say it in English."""
        return ENGLISH[self.kind].format_map(self.values)
