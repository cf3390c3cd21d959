"""When a click that may have been made shows on the site's order list for certain.

The rule: docs/specification.md#settle-time.
"""

from collections.abc import Sequence

from gateway.domain.instant import microseconds
from gateway.domain.leases import LeaseRecord, Via
from gateway.domain.models import Policy


def may_have_clicked(lease: LeaseRecord) -> bool:
    """Tell whether this lease allowed a click: it was permitted, or taken over REST, where no permit is needed."""
    return lease.via is Via.REST or lease.permit_expires_us is not None


def settled_us(policy: Policy, leases: Sequence[LeaseRecord]) -> int | None:
    """Return when the last of these leases is settled, by the service clock; None if there is none.

    That is the settle time after the later of its permit's expiry and its end.
    """
    ends = [stamp for lease in leases for stamp in (lease.permit_expires_us, lease.ended_us) if stamp is not None]
    return max(ends) + microseconds(policy.permit_settle) if ends else None
