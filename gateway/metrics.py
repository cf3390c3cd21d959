"""Metrics for Prometheus (docs/observability.md names each and what to make of it).

Events are counted from the history, as far as it has grown since the last collection, so no use case counts anything.
The current state is read from the database when a metric is requested. Labels have few values: statuses, kinds,
reasons, and the names of workers, of which the most recent ones are shown.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from common.target import Target
from gateway.domain.account_queries import QueryStatus
from gateway.domain.budgets import BudgetState
from gateway.domain.callbacks import CallbackStatus
from gateway.domain.health import GatewaysSeen, Health, ProblemKind
from gateway.domain.instant import MICROSECONDS, Instant
from gateway.domain.models import AlertKind
from gateway.domain.states import TaskStatus
from gateway.store import budgets, counts, history, lanes, pauses
from gateway.store import workers as worker_rows
from gateway.store.port import ReadTransaction, Store

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST
MAX_WORKERS: Final = 100
MAX_TARGETS: Final = 50
"""Targets with a figure of their own: with every account as a label a page would grow with the installation."""
MAX_EVENTS_A_COLLECTION: Final = 200_000
FRESH_SECONDS: Final = 1.0
"""However often it is asked, the database is read once in this time."""


@dataclass(frozen=True, slots=True)
class _Snapshot:
    tasks: dict[str, int]
    queries: dict[str, int]
    callbacks: dict[str, int]
    alerts: dict[str, int]
    queue_age: float
    target_ages: dict[Target, float]
    targets: dict[str, int]
    workers: dict[str, float]
    pauses: int
    budgets: tuple[BudgetState, ...]
    oldest_transaction: timedelta
    last_event: int
    events: dict[str, int]
    refusals: dict[tuple[str, str], int]


class GatewayFigures:
    """What a gateway knows of itself among those of its database, and of the others."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._here = Info("ordergateway_gateway", "What this gateway is called.", registry=registry)
        self._leads = Gauge("ordergateway_leads", "1 while this gateway runs the sweeps for all.", registry=registry)
        self._numbers = Gauge(
            "ordergateway_gateways", "Gateways of the database: living, gone without signing off.", ["state"],
            registry=registry,
        )  # fmt: skip
        self._silence = Gauge(
            "ordergateway_gateway_silent_seconds",
            "Since a gateway of the database last told of itself.",
            ["gateway"],
            registry=registry,
        )
        self._leaderless = Gauge(
            "ordergateway_leaderless_seconds", "For how long no gateway has led the sweeps; 0 while one does.",
            registry=registry,
        )  # fmt: skip
        self._clock_age = Gauge(
            "ordergateway_clock_age_seconds", "How long ago the service clock was last written down.", registry=registry
        )

    def show(self, seen: GatewaysSeen) -> None:
        """Show what was found; a name that several have had stands for the one heard of last."""
        silences: dict[str, float] = {}
        for gateway in seen.gateways:
            if gateway.here:
                self._here.info({"gateway": gateway.name})
                self._leads.set(gateway.leads)
            if gateway.silent_for is not None:
                silence = gateway.silent_for.total_seconds()
                silences[gateway.name] = min(silence, silences.get(gateway.name, silence))
        gone = sum(gateway.gone for gateway in seen.gateways)
        self._numbers.labels("gone").set(gone)
        self._numbers.labels("living").set(len(seen.gateways) - gone)
        self._silence.clear()
        for name, silence in silences.items():
            self._silence.labels(name).set(silence)
        self._leaderless.set(seen.leaderless_for.total_seconds())
        self._clock_age.set(seen.clock_age.total_seconds())


class Metrics:
    """The gateway's metrics, on a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        Info("ordergateway_build", "The version that runs.", registry=registry).info(
            {"version": version("order-gateway")}
        )
        self._tasks = Gauge("ordergateway_tasks", "Tasks by status.", ["status"], registry=registry)
        self._queries = Gauge("ordergateway_queries", "Account queries by status.", ["status"], registry=registry)
        self._callbacks = Gauge("ordergateway_callbacks", "Callbacks by status.", ["status"], registry=registry)
        self._alerts = Gauge("ordergateway_alerts_standing", "Alerts that stand.", ["kind"], registry=registry)
        self._problems = Gauge(
            "ordergateway_problem",
            "1 while something does not work or waits for a person, as health tells it, else 0.",
            ["kind"],
            registry=registry,
        )
        self._queue_age = Gauge(
            "ordergateway_queue_oldest_seconds", "How long the oldest queued task has waited.", registry=registry
        )
        self._target_age = Gauge(
            "ordergateway_target_oldest_seconds",
            "How long a target's oldest queued task has waited; the targets whose tasks came first.",
            ["site", "account"],
            registry=registry,
        )
        self._targets = Gauge(
            "ordergateway_targets", "Targets: known, with queued tasks, with a task in execution.", ["what"],
            registry=registry,
        )  # fmt: skip
        self._worker_silence = Gauge(
            "ordergateway_worker_silent_seconds", "Since a worker was last heard of.", ["worker_id"], registry=registry
        )
        self._channels = Gauge(
            "ordergateway_notify_channel_failures",
            "Messages in a row that a channel of alerts has not taken.",
            ["channel"],
            registry=registry,
        )
        self._pauses = Gauge("ordergateway_pauses", "Pauses of dispatch that stand.", registry=registry)
        self._budgets = Gauge(
            "ordergateway_budget_yen",
            "Yen of each budget in its period of now: limit, reserved by permits, settled, left.",
            ["budget", "what"],
            registry=registry,
        )
        self._held = Gauge(
            "ordergateway_held_for_approval", "Queued tasks that wait for an approval.", registry=registry
        )
        self._waiting = Gauge("ordergateway_waiting", "Open streams and long polls.", registry=registry)
        self._gateways = GatewayFigures(registry)
        self._events = Counter(
            "ordergateway_events", "Entries of the history since the start, by kind.", ["kind"], registry=registry
        )
        self._refusals = Counter(
            "ordergateway_refusals",
            "Refusals in the history since the start, by kind and reason; repeats of the last one are not counted.",
            ["kind", "reason"],
            registry=registry,
        )
        self._tries = Counter(
            "ordergateway_callback_tries", "Tries to deliver a callback, by outcome.", ["outcome"], registry=registry
        )
        self._group = Histogram(
            "ordergateway_store_group_operations",
            "Operations that were committed together.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
            registry=registry,
        )
        self._commit = Histogram(
            "ordergateway_store_commit_seconds",
            "How long the disk took for a commit.",
            buckets=(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
            registry=registry,
        )
        self._lost = Counter(
            "ordergateway_database_reconnects",
            "Connections to the database server that were lost and made anew, by what they were for.",
            ["purpose"],
            registry=registry,
        )
        self._oldest_transaction = Gauge(
            "ordergateway_database_oldest_transaction_seconds",
            "For how long the oldest transaction on the database server has been open, which holds back vacuum.",
            registry=registry,
        )
        self._find_oldest_transaction: Callable[[ReadTransaction], timedelta] = lambda _tx: timedelta(0)
        for purpose in ("writer", "reader", "listener"):
            self._lost.labels(purpose)
        for outcome in ("delivered", "reschedule", "given_up"):
            self._tries.labels(outcome)
        self._seen_event = 0
        self._looked_at = -FRESH_SECONDS
        self._looking = asyncio.Lock()

    def committed(self, operations: int, seconds: float) -> None:
        """Note a commit of the store."""
        self._group.observe(operations)
        self._commit.observe(seconds)

    def connection_lost(self, purpose: str) -> None:
        """Note that a connection to the database server was lost. May be called in any thread."""
        self._lost.labels(purpose).inc()

    def callback_tried(self, outcome: str) -> None:
        """Note what came of a try to deliver a callback."""
        self._tries.labels(outcome).inc()

    async def begin(self, store: Store, oldest_transaction: Callable[[ReadTransaction], timedelta]) -> None:
        """Count events from here on. `oldest_transaction` tells for how long one has held back vacuum."""
        self._find_oldest_transaction = oldest_transaction
        self._seen_event = await store.read(_last_event)

    async def page(self, store: Store, health: Callable[[], Awaitable[Health]], waiters: Callable[[], int]) -> bytes:
        """Return everything in Prometheus' text form; `waiters` tells how many streams and long polls are open.

        Raises StoreUnavailableError.
        """
        async with self._looking:
            if time.monotonic() - self._looked_at >= FRESH_SECONDS:
                found = await health()
                problems = {problem.kind for problem in found.problems}
                self._show(await store.read(self._collect))
                self._held.set(found.held_for_approval_count)
                for channel in found.channels:
                    self._channels.labels(channel.channel).set(channel.failures)
                if found.fellows is not None:
                    self._gateways.show(found.fellows)
                for kind in ProblemKind:
                    self._problems.labels(kind.value).set(kind in problems)
                self._looked_at = time.monotonic()
        self._waiting.set(waiters())
        return generate_latest(self.registry)

    def _collect(self, tx: ReadTransaction, now: Instant) -> _Snapshot:
        after = self._seen_event
        last = min(_last_event(tx, now), after + MAX_EVENTS_A_COLLECTION)
        heads = lanes.longest_waiting(tx, MAX_TARGETS)
        waiting_us = now.elapsed_us - heads[0].queued_us if heads else 0
        return _Snapshot(
            tasks=counts.tasks_by_status(tx),
            queries=counts.queries_by_status(tx),
            callbacks=counts.callbacks_by_status(tx),
            alerts=counts.standing_alerts_by_kind(tx),
            queue_age=waiting_us / MICROSECONDS,
            target_ages={head.target: (now.elapsed_us - head.queued_us) / MICROSECONDS for head in heads},
            targets=lanes.counts(tx),
            workers={
                worker.worker_id: max(0, now.elapsed_us - worker.last_seen_us) / MICROSECONDS
                for worker in worker_rows.most_recent(tx, MAX_WORKERS)
            },
            pauses=len(pauses.standing(tx)),
            budgets=budgets.standing(tx, now),
            oldest_transaction=self._find_oldest_transaction(tx),
            last_event=last,
            events=counts.events_by_kind(tx, after, last),
            refusals=counts.refusals(tx, after, last),
        )

    def _show(self, snapshot: _Snapshot) -> None:
        for status in TaskStatus:
            self._tasks.labels(status.value).set(snapshot.tasks.get(status, 0))
        for query_status in QueryStatus:
            self._queries.labels(query_status.value).set(snapshot.queries.get(query_status, 0))
        for callback_status in CallbackStatus:
            self._callbacks.labels(callback_status.value).set(snapshot.callbacks.get(callback_status, 0))
        for kind in AlertKind:
            self._alerts.labels(kind.value).set(snapshot.alerts.get(kind, 0))
        self._queue_age.set(snapshot.queue_age)
        self._target_age.clear()
        for target, age in snapshot.target_ages.items():
            self._target_age.labels(*target).set(age)
        for what, number in snapshot.targets.items():
            self._targets.labels(what).set(number)
        self._worker_silence.clear()
        for worker_id, silence in snapshot.workers.items():
            self._worker_silence.labels(worker_id).set(silence)
        self._pauses.set(snapshot.pauses)
        self._budgets.clear()
        for state in snapshot.budgets:
            yen = {
                "limit": state.budget.limit_yen,
                "reserved": state.use.reserved_yen,
                "settled": state.use.settled_yen,
                "left": state.left_yen,
            }
            for what, amount in yen.items():
                self._budgets.labels(state.budget.budget_id, what).set(amount)
        self._oldest_transaction.set(snapshot.oldest_transaction.total_seconds())
        for name, count in snapshot.events.items():
            self._events.labels(name).inc(count)
        for (name, reason), count in snapshot.refusals.items():
            self._refusals.labels(name, reason).inc(count)
        self._seen_event = snapshot.last_event


def _last_event(tx: ReadTransaction, _now: Instant) -> int:
    return history.last_sequence(tx)
