"""How the parts of the gateway are put together, once, for the program, the tests and the simulation.

Neither sockets nor the database are opened here: whoever builds a gateway brings the store and the clock, serves what
`Gateway` offers (servers.py) and runs its work (main.py). Longer than other modules, since each part has its line here
and nowhere else.
"""

import secrets
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, Protocol

from pydantic import SecretStr

from gateway.account_queries.start import resume_queries_after_start
from gateway.api.auth.admission import Admission
from gateway.api.auth.authenticator import EVERY_ROLE, Authenticator, Role
from gateway.api.services import Services
from gateway.api.services.account_queries import AccountQueryService
from gateway.api.services.catalog import CatalogService
from gateway.api.services.operations import OperationsService
from gateway.api.services.order_leases import OrderLeaseService
from gateway.api.services.orders import OrderService
from gateway.api.services.query_leases import QueryLeaseService
from gateway.catalog.ingest import Ingest
from gateway.catalog.rounds import Rounds
from gateway.clock import KeptClock
from gateway.dispatch.notifier import Notifier
from gateway.dispatch.order_lease_source import OrderDispatcher, OrderLeaseSource
from gateway.dispatch.query_lease_source import QueryDispatcher, QueryLeaseSource
from gateway.dispatch.stream import HEARTBEAT_SECONDS
from gateway.dispatch.streams import Streams
from gateway.domain.instant import Instant
from gateway.domain.operations import BackupFacts
from gateway.domain.refusals import Refusal
from gateway.health import HealthCheck
from gateway.orders.start import Started, resume_after_start
from gateway.people import People, tell_people
from gateway.settings import Settings
from gateway.store.gateways import Fellows, Gateways, OnlyGateway
from gateway.store.port import Store, Transaction
from gateway.store.sqlite.online_backups import OnlineBackups
from gateway.sweeps.callback_delivery import CallbackSweep
from gateway.sweeps.callback_sender import CallbackSender
from gateway.sweeps.catalog_rounds import CatalogSweep
from gateway.sweeps.expire import ExpireSweep
from gateway.sweeps.gateways import GatewaySweep
from gateway.sweeps.health import HealthSweep
from gateway.sweeps.led_sweep import LedSweep
from gateway.sweeps.presence import PresenceSweep
from gateway.sweeps.query_timeouts import QuerySweep
from gateway.sweeps.query_wake import QueryWakeSweep
from gateway.sweeps.release import ReleaseSweep
from gateway.sweeps.retention import RetentionSweep
from gateway.sweeps.sweep import Sweep, run_sweep
from gateway.sweeps.unused_targets import UnusedTargetsSweep
from gateway.sweeps.wake import WakeSweep

_TOKEN_BYTES: Final = 32
_ID_BYTES: Final = 8


class Backups(Protocol):
    """Makes online backups."""

    async def create(self) -> BackupFacts | Refusal:
        """Make a backup and verify it."""
        ...

    async def close(self) -> None:
        """Give up a backup that is being made, and wait until nothing is left of it."""
        ...


@dataclass(frozen=True, slots=True)
class Sharing:
    """What a gateway has of its database where others may use it too."""

    backups: Backups
    leads: Callable[[], Awaitable[bool]]
    streams: Streams
    gateways: Fellows


@dataclass(frozen=True, slots=True)
class Ids:
    """What makes lease tokens, and the ids of tasks and queries that came without one."""

    token: Callable[[], str]
    task: Callable[[], str]
    query: Callable[[], str]


def random_ids(clock: KeptClock) -> Ids:
    """Return ids that nobody can guess; a task's and a query's begin with the day."""

    def dated(kind: str) -> str:
        return f"{kind}-{clock.wall_utc()[:10].replace('-', '')}-{secrets.token_hex(_ID_BYTES)}"

    return Ids(lambda: secrets.token_urlsafe(_TOKEN_BYTES), lambda: dated("t"), lambda: dated("aq"))


@dataclass(frozen=True, slots=True)
class Gateway:
    """The parts of one gateway. It does nothing until `resume` is done, and until somebody runs its `work`."""

    settings: Settings
    store: Store
    clock: KeptClock
    notifier: Notifier
    ids: Ids
    dispatcher: OrderDispatcher
    query_dispatcher: QueryDispatcher
    rounds: Rounds
    on_result: Ingest
    backups: Backups
    health: HealthCheck
    admission: Admission
    services: Services
    callbacks: CallbackSweep
    sweeps: tuple[Sweep, ...]

    async def resume(self) -> Started:
        """Take up what a former process left. To be called once, before anything is served."""
        started = await self.store.write(self._resume_queues)
        await self.store.write(self.clock.save)
        return started

    def _resume_queues(self, tx: Transaction, now: Instant) -> Started:
        settings, went_on, wall_utc = self.settings, self.clock.continues, self.clock.wall_utc()
        resume_queries_after_start(tx, now, settings.query_policy(), clock_continues=went_on, wall_utc=wall_utc)
        return resume_after_start(
            tx,
            now,
            settings.policy(),
            clock_continues=went_on,
            moved_ahead_us=self.clock.moved_ahead_us,
            wall_utc=wall_utc,
        )

    def work(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield what has to run all the time, each until it is cancelled."""
        yield self.dispatcher.run()
        yield self.query_dispatcher.run()
        yield from map(run_sweep, self.sweeps)

    async def drain(self) -> None:
        """Give back what was leased and reached nobody, and write down the clock. To be called when nothing runs."""
        await self.dispatcher.drain()
        await self.query_dispatcher.drain()
        await self.store.write(self.clock.save)


def build_gateway(  # noqa: PLR0913 - the parts that it is put together from
    store: Store,
    clock: KeptClock,
    settings: Settings,
    notifier: Notifier,
    *,
    ids: Ids | None = None,
    sharing: Sharing | None = None,
    on_callback_try: Callable[[str], None] = lambda _outcome: None,
    current_trace: Callable[[], str] = lambda: "",
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
) -> Gateway:
    """Put a gateway together. `store` publishes to `notifier`; `on_callback_try` and `current_trace`: see the users.

    `sharing` None: the database is a file of this process alone. `ids` and `heartbeat_seconds` are replaced in tests.
    """
    backups: Backups = OnlineBackups(settings.gateway_db_path, settings.backup_dir, clock.wall_utc)
    streams: Streams | None = None
    gateways: Gateways = OnlyGateway(secrets.token_hex(_ID_BYTES), settings.name, clock.wall_utc())
    if sharing is not None:
        backups, streams, gateways = sharing.backups, sharing.streams, sharing.gateways
    ids = ids or random_ids(clock)
    policy, query_policy, catalog_policy = settings.policy(), settings.query_policy(), settings.catalog_policy()
    rounds = Rounds(catalog_policy, query_policy, ids.query)
    on_result = Ingest(catalog_policy, rounds)
    dispatcher = OrderDispatcher(store, notifier, OrderLeaseSource(policy, ids.token), heartbeat_seconds, streams)
    query_dispatcher = QueryDispatcher(store, notifier, QueryLeaseSource(query_policy), heartbeat_seconds)
    admission = _admission(settings, current_trace)
    people = tell_people(settings)
    health = _health_check(store, clock, settings, gateways, lambda: admission.waiters, people)
    callbacks = CallbackSweep(store, _callback_sender(settings), on_try=on_callback_try)
    return Gateway(
        settings=settings,
        store=store,
        clock=clock,
        notifier=notifier,
        ids=ids,
        dispatcher=dispatcher,
        query_dispatcher=query_dispatcher,
        rounds=rounds,
        on_result=on_result,
        backups=backups,
        health=health,
        admission=admission,
        services=Services(
            orders=OrderService(store, notifier, policy, ids.task),
            order_leases=OrderLeaseService(store, dispatcher, policy, ids.token),
            account_queries=AccountQueryService(store, notifier, query_policy, ids.query),
            query_leases=QueryLeaseService(store, query_dispatcher, query_policy, on_result),
            catalog=CatalogService(store, catalog_policy, rounds),
            operations=OperationsService(store, policy, backups.create, health, people.test(store)),
        ),
        callbacks=callbacks,
        sweeps=(
            *_once_for_all(
                sharing,
                ExpireSweep(store, settings.sweep_interval_seconds, clock.save),
                *_operation_sweeps(store, settings, people),
                callbacks,
                QuerySweep(store, query_policy, settings.sweep_interval_seconds),
                CatalogSweep(store, rounds, settings.sweep_interval_seconds),
            ),
            HealthSweep(health.look, settings.sweep_interval_seconds),
            PresenceSweep(store, lambda: {request.worker_id for request in dispatcher.waiting()}, gateways.name),
            WakeSweep(store, notifier),
            ReleaseSweep(store, notifier),
            QueryWakeSweep(store, notifier),
            *([] if sharing is None else [GatewaySweep(store, sharing.gateways, lambda: admission.waiters)]),
        ),
    )


def _once_for_all(sharing: Sharing | None, *sweeps: Sweep) -> Iterator[Sweep]:
    """Let one gateway run the sweeps of all, where there may be several."""
    for sweep in sweeps:
        yield sweep if sharing is None else LedSweep(sweep, sharing.leads)


def _operation_sweeps(store: Store, settings: Settings, people: People) -> Iterator[Sweep]:
    yield from people.sweeps(store, settings.policy(), settings.sweep_interval_seconds)
    yield UnusedTargetsSweep(store)
    if settings.retention_days:
        yield RetentionSweep(store, timedelta(days=settings.retention_days))


def _health_check(
    store: Store, clock: KeptClock, settings: Settings, gateways: Gateways, waiting: Callable[[], int], people: People
) -> HealthCheck:
    seconds = settings.backup_alert_seconds
    return HealthCheck(
        store,
        settings.policy(),
        clock.save,
        gateways,
        waiting,
        has_webhook=people.webhook is not None,
        channels=people.policy.all_channels,
        # A server's database is backed up by its own means.
        backup_alert=timedelta(seconds=seconds) if seconds and settings.gateway_db_url is None else None,
    )


def _callback_sender(settings: Settings) -> CallbackSender:
    return CallbackSender(_plain(settings.callback_secret), settings.callback_allowed_hosts)


def _admission(settings: Settings, current_trace: Callable[[], str]) -> Admission:
    tokens = {
        "api": (EVERY_ROLE, _plain(settings.api_token)),
        "upstream": (frozenset({Role.UPSTREAM}), _plain(settings.upstream_token)),
        "worker": (frozenset({Role.WORKER}), _plain(settings.worker_token)),
        "operator": (frozenset({Role.OPERATOR}), _plain(settings.operator_token)),
        "viewer": (frozenset({Role.VIEWER}), _plain(settings.viewer_token)),
    }
    return Admission(
        Authenticator(tokens),
        max_waiters=settings.max_waiters,
        calls_per_second=settings.rate_limit_per_second,
        current_trace=current_trace,
    )


def _plain(secrets_: tuple[SecretStr, ...]) -> list[str]:
    return [secret.get_secret_value() for secret in secrets_]
