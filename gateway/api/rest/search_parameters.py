"""Parameters of the list of orders beyond status, site and account; each is absent, or narrows the list further."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import Query

from gateway.api.codec.search import label_pairs
from gateway.domain import fields
from gateway.domain.models import Policy
from gateway.domain.refusals import invalid
from gateway.domain.search import TaskSearch
from gateway.domain.states import TaskStatus

_TIME = "RFC 3339 with an offset."

Statuses = Annotated[
    str | None,
    Query(
        description=f"Only tasks in this status, or in one of several separated by commas: {', '.join(TaskStatus)}.",
        examples=["stale,needs_human"],
    ),
]


@dataclass(frozen=True, slots=True)
class SearchParameters:
    """What is searched for, as it came. With any of these the list is read by `page_token`, and not counted."""

    label: Annotated[
        str | None, Query(description="Only tasks with this label, as `key=value`.", examples=["team=purchasing"])
    ] = None
    site_order_id: Annotated[str | None, Query(description="Only tasks with this order number of the site.")] = None
    created_from: Annotated[str | None, Query(description=f"Filed at this time or later. {_TIME}")] = None
    created_to: Annotated[str | None, Query(description=f"Filed before this time. {_TIME}")] = None
    updated_from: Annotated[
        str | None, Query(description=f"Last changed at this time or later; orders by `updated_at`. {_TIME}")
    ] = None
    updated_to: Annotated[
        str | None, Query(description=f"Last changed before this time; orders by `updated_at`. {_TIME}")
    ] = None
    needs_decision: Annotated[bool, Query(description="Only tasks that wait for a person.")] = False
    held_for_approval: Annotated[bool, Query(description="Only tasks that wait in the queue for an approval.")] = False
    task_id_prefix: Annotated[str, Query(description="Only tasks whose task_id begins so.")] = ""
    task_id_contains: Annotated[str, Query(description="Only tasks whose task_id contains this.")] = ""
    oldest_first: Annotated[bool, Query(description="The oldest first.")] = False

    def search(self, status: str | None, site: str | None, account: str | None, policy: Policy) -> TaskSearch:
        """Check all of them. Raises RefusedError INVALID_FIELD."""
        return TaskSearch(
            statuses=_statuses(status),
            site=None if site is None else fields.site("site", site, policy.sites),
            account=account,
            labels=() if self.label is None else _label(self.label),
            site_order_id=fields.site_order_id("site_order_id", self.site_order_id),
            created_from=fields.utc_time("created_from", self.created_from),
            created_to=fields.utc_time("created_to", self.created_to),
            updated_from=fields.utc_time("updated_from", self.updated_from),
            updated_to=fields.utc_time("updated_to", self.updated_to),
            needs_decision=self.needs_decision,
            held_for_approval=self.held_for_approval,
            task_id_prefix=fields.part_of_key("task_id_prefix", self.task_id_prefix),
            task_id_contains=fields.part_of_key("task_id_contains", self.task_id_contains),
            oldest_first=self.oldest_first,
        )


def _statuses(told: str | None) -> tuple[TaskStatus, ...]:
    if told is None:
        return ()
    try:
        return tuple(sorted({TaskStatus(word) for word in told.split(",")}))
    except ValueError:
        why = f"must be one or several of {', '.join(TaskStatus)}, separated by commas"
        raise invalid("status", why) from None


def _label(told: str) -> tuple[tuple[str, str], ...]:
    key, equals, value = told.partition("=")
    if not equals:
        raise invalid("label", "must be a key and a value, as in team=purchasing")
    return label_pairs("label", {key: value})
