"""The order catalogue (docs/specification.md#catalogue): what the site shows, and where it differs from the tasks."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from common.target import Target
from gateway.domain.states import OrderState


class DiscrepancyKind(StrEnum):
    """What differs between the site and the tasks."""

    UNKNOWN_TO_TASKS = "unknown_to_tasks"
    """The site shows an order that no task knows."""
    MISSING_ON_SITE = "missing_on_site"
    """A task told an order number that the site does not show, in a window that was fully covered."""
    STATE_MOVED_ON = "state_moved_on"
    """The site shows a later state than the task's latest report."""


@dataclass(frozen=True, slots=True)
class CatalogPolicy:
    """The settings that the catalogue depends on.

    `interval` None: the catalogue is off. `window`: how far back a list reaches; `settle`: the site may show an order
    only so long after it was placed.
    """

    sites: tuple[str, ...]
    interval: timedelta | None
    window: timedelta
    details_a_round: int
    settle: timedelta


@dataclass(frozen=True, slots=True)
class CatalogQuery:
    """What the catalogue asks for with a query: one order's detail, or a list of the orders since `since_at` (UTC)."""

    order_number: str | None
    since_at: str | None


@dataclass(frozen=True, slots=True)
class ListedOrder:
    """An order as a list of the site shows it. `order_date` is UTC text."""

    order_number: str
    shop_id: str
    shop_name: str
    order_date: str | None


@dataclass(frozen=True, slots=True)
class OrderDetail:
    """An order as its own page on the site shows it."""

    delivery_status: str
    order_state: OrderState | None


@dataclass(frozen=True, slots=True)
class CatalogFilter:
    """Which part of the catalogue a list shows; None: any."""

    site: str | None = None
    account: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogOrder:
    """An order as the site shows it. `seen` grows with every sighting and orders the catalogue."""

    seen: int
    site: str
    account: str
    order_number: str
    shop_id: str
    shop_name: str
    order_date: str | None
    delivery_status: str
    order_state: OrderState | None
    discovered_at: str
    detail_fetched_at: str | None
    last_seen_at: str


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One difference, for a person to look at. `task_id` is empty where no task is concerned."""

    row: int
    kind: DiscrepancyKind
    site: str
    account: str
    order_number: str
    task_id: str
    task_state: OrderState | None
    site_state: OrderState | None
    found_at: str

    @property
    def _target(self) -> Target:
        return Target(self.site, self.account)

    @property
    def explanation(self) -> str:
        """Return one sentence for people."""
        match self.kind:
            case DiscrepancyKind.UNKNOWN_TO_TASKS:
                return f"{self._target} shows order {self.order_number}, which no task has told"
            case DiscrepancyKind.MISSING_ON_SITE:
                return (
                    f"task {self.task_id} told order {self.order_number}, which {self._target} does not show although "
                    "its list was read completely"
                )
            case DiscrepancyKind.STATE_MOVED_ON:
                return (
                    f"{self._target} shows order {self.order_number} as {self.site_state}, "
                    f"task {self.task_id} has told {self.task_state}"
                )
