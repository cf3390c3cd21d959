"""Opening the database that the settings name: a SQLite file, or one on a PostgreSQL server for several gateways."""

import functools
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from pydantic import SecretStr

from common.settings import PREFIX, SettingsError
from gateway.clock import KeptClock, SystemTime, load_clock, system_time
from gateway.composition import Sharing
from gateway.dispatch.dispatcher import wake_topic
from gateway.dispatch.notifier import Notifier
from gateway.domain.instant import Instant
from gateway.domain.operations import BackupFacts
from gateway.domain.refusals import Reason, Refusal
from gateway.joining import Joining
from gateway.settings import Settings
from gateway.store.gathering import OnCommit, ignore_commit
from gateway.store.port import DatabaseUnusableError, ReadTransaction, Store, Transaction
from gateway.store.sqlite.engine import SqliteStore, open_database
from gateway.store.sqlite.failures import DatabaseGoneError

if TYPE_CHECKING:
    from gateway.store.postgres.engine import Database, PostgresStore

T = TypeVar("T")

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class OwnStore(Store, Protocol):
    """A store that its owner closes."""

    async def close(self) -> None:
        """Finish what is queued and give everything back."""
        ...


async def _alone() -> None:
    """Nobody else uses the database."""


def _none_open(_tx: ReadTransaction) -> timedelta:
    """A file is not vacuumed."""
    return timedelta(0)


@dataclass(frozen=True, slots=True)
class OpenDatabase:
    """A database that serves. `why_ended` says what to raise when it has failed; `work` has to run all the time.

    `join` is awaited before anything is asked of it, and raises SettingsError where other gateways run on other
    settings; `leave`, when nothing runs any more. `oldest_transaction`: how long something has held back vacuum.
    """

    store: OwnStore
    clock: KeptClock
    why_ended: Callable[[BaseException], Exception]
    sharing: Sharing | None = None
    work: tuple[Callable[[], Coroutine[Any, Any, None]], ...] = ()
    join: Callable[[], Awaitable[None]] = _alone
    leave: Callable[[], Awaitable[None]] = _alone
    oldest_transaction: Callable[[ReadTransaction], timedelta] = _none_open


class FatalStoreError(Exception):
    """A commit failed with an unknown outcome, so the process must end and be started again."""


class ServerBackups:
    """In place of online backups where the database is a server's."""

    async def create(self) -> BackupFacts | Refusal:
        """Refuse, and say what to use."""
        return Refusal(
            Reason.FEATURE_OFF, "the database is PostgreSQL's: back it up with its own tools (docs/postgresql.md)"
        )

    async def close(self) -> None:
        """Nothing is being made."""


def require_driver() -> None:
    """Raise DatabaseUnusableError where PostgreSQL's driver is missing: it is an extra, imported by who asks for it."""
    try:
        import psycopg  # noqa: F401, PLC0415
    except ImportError as error:
        raise DatabaseUnusableError(
            "RAKUTEN_GATEWAY_DB_URL needs the extra: pip install 'order-gateway[postgres]'"
        ) from error


def open_for(
    settings: Settings,
    machine: SystemTime | None,
    notifier: Notifier,
    on_fatal: Callable[[BaseException], None],
    on_commit: OnCommit,
    on_lost: Callable[[str], None],
) -> OpenDatabase:
    """Open the database of `settings`. `machine` replaces the clocks of machine and database, in tests.

    `on_lost` is called when a connection to a server's database is lost, with what that was for.

    Raises DatabaseUnusableError, StoreUnavailableError.
    """
    if settings.gateway_db_url is not None:
        return _open_server(settings, settings.gateway_db_url, machine, notifier, on_fatal, on_commit, on_lost)
    database = open_database(settings.gateway_db_path)
    clock = load_clock(database.transaction(), machine or system_time())
    store = SqliteStore(database, clock, notifier.publish, on_fatal, on_commit)
    return OpenDatabase(store, clock, lambda error: _why_a_file_ended(settings, error))


def _open_server(
    settings: Settings,
    url: SecretStr,
    machine: SystemTime | None,
    notifier: Notifier,
    on_fatal: Callable[[BaseException], None],
    on_commit: OnCommit,
    on_lost: Callable[[str], None],
) -> OpenDatabase:
    require_driver()
    from gateway.store.postgres import engine  # noqa: PLC0415
    from gateway.store.postgres.service_clock import Machine  # noqa: PLC0415

    time = machine or system_time()
    clocks = Machine(time.boot_id, time.boot_us)
    if machine is not None:
        clocks = Machine(time.boot_id, time.boot_us, lambda _read: (time.wall() - _EPOCH) // timedelta(microseconds=1))
    database = engine.open_database(url.get_secret_value(), clocks, standby=settings.database_standby)
    database = replace(database, on_lost=on_lost)
    store = engine.PostgresStore(database, notifier.publish, on_fatal, on_commit)
    return share(settings, notifier, database, store)


def share(settings: Settings, notifier: Notifier, database: "Database", store: "PostgresStore") -> OpenDatabase:
    """Return a database that other gateways may use at the same time, with what this one has of it."""
    from gateway.store.postgres import gateways, listener, sharing, vacuum  # noqa: PLC0415 - as in _open_server

    hearing = gateways.Hearing()
    shared = gateways.SharedGateways(database.gateway_id, settings.name, settings.agreed(), hearing.unheard_for)
    lost = functools.partial(database.on_lost, "listener")
    joining = Joining(shared.join, settings.database_standby)

    async def join() -> None:
        differs = await joining.join(store)
        if differs is not None:
            raise SettingsError(f"{PREFIX}{differs}")

    def heard(topics: list[str] | None) -> None:
        told = notifier.topics() if topics is None else {*topics, *map(wake_topic, topics)}
        notifier.publish(told)

    hears = listener.Listener(database.address, database.gateway_id, heard, hearing, lost)
    return OpenDatabase(
        store,
        database.clock,
        lambda error: error if isinstance(error, DatabaseUnusableError) else FatalStoreError(str(error)),
        Sharing(ServerBackups(), store.leads, sharing.SharedStreams(), shared),
        (store.vouch_for_time, hears.run),
        join,
        store.leave,
        vacuum.oldest_transaction,
    )


async def run_on_server(settings: Settings, operation: Callable[[Transaction, Instant], T]) -> T:
    """Run one operation on the server's database, beside gateways that may run. Raises as `open_for` does."""
    database = open_for(settings, None, Notifier(), lambda _error: None, ignore_commit, lambda _purpose: None)
    try:
        return await database.store.write(operation)
    finally:
        await database.store.close()


def shown_server(url: SecretStr) -> str:
    """Return where a server's database is, for people: without password. Raises DatabaseUnusableError."""
    require_driver()
    from gateway.store.postgres.connection import parse_url  # noqa: PLC0415

    return parse_url(url.get_secret_value()).shown


def _why_a_file_ended(settings: Settings, error: BaseException) -> Exception:
    """Return what to raise after a commit of unknown outcome: without its file a start would make an empty database."""
    if isinstance(error, DatabaseGoneError):
        return DatabaseUnusableError(
            f"{settings.gateway_db_path.absolute()}: {error}; put it back together with its -wal, or restore a backup, "
            "before you start the gateway: a start without it makes an empty database"
        )
    return FatalStoreError(f"a commit failed with an unknown outcome: {error}")
