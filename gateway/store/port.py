"""The port between use cases and a database engine.

A use case is a plain synchronous function `(tx, now, ...) -> result`. It reads and writes through a Transaction, names
SQL from gateway/store/sql, and knows no engine. A store runs it, durably, and answers after the commit.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Concatenate, Final, ParamSpec, Protocol, TypeVar

from gateway.domain.instant import Instant

Value = str | int | None
P = ParamSpec("P")
T = TypeVar("T")

ABOVE_ALL_ROWS: Final = 2**63 - 1
"""A number above every row's, where a list from the newest begins."""

LOCAL_TOPIC: Final = "look: "
"""How a topic begins that concerns those who wait in this process alone, where several share a database."""


class Row(Protocol):
    """A row of a result, read by column name."""

    def __getitem__(self, column: str, /) -> Any:
        """Return one column."""
        ...


class RowCountError(Exception):
    """A statement that must move exactly one row moved none or several: a fault of this program; all is undone."""


class ReadTransaction(Protocol):
    """A snapshot of the database that cannot write."""

    def one(self, name: str, /, **parameters: Value) -> Row | None:
        """Run a named query and return its first row, or None."""
        ...

    def all(self, name: str, /, **parameters: Value) -> Sequence[Row]:
        """Run a named query and return its rows."""
        ...


class Transaction(ReadTransaction, Protocol):
    """One use case's view of the database. All of its changes commit together, or none does."""

    def insert(self, name: str, /, **parameters: Value) -> None:
        """Run a named INSERT of one row. Raises RowCountError if no row was added."""
        ...

    def change_one(self, name: str, /, **parameters: Value) -> None:
        """Run a named statement that moves exactly one row. Raises RowCountError if it moved none or several."""
        ...

    def change(self, name: str, /, **parameters: Value) -> int:
        """Run a named statement and return how many rows it changed, for callers that decide by it."""
        ...

    def change_any(self, name: str, /, **parameters: Value) -> None:
        """Run a named statement that may move any number of rows, also none."""
        ...

    def notify(self, topic: str) -> None:
        """Wake those who wait for `topic` once this is committed. Only a hint: a poll stands behind it."""
        ...


PreCommitHook = Callable[[Transaction, Instant], Callable[[], None] | None]
"""What runs at the end of a transaction, in whatever thread runs operations.

It may return what to call after the commit, which is called in the event loop's thread.
"""

PrepareHook = Callable[[Collection[str]], PreCommitHook | None]
"""Called in the event loop's thread with the topics that the operations of a transaction have notified.

None if nothing is to follow.

It gives the hook an immutable snapshot of what it needs to know of the loop's state: the hook may run in any thread.
"""


class StoreUnavailableError(Exception):
    """The database cannot do it now (disk full, locked, I/O error); nothing was stored."""


class StoreDamagedError(StoreUnavailableError):
    """The database is damaged where it was needed; a person must put a backup back."""


class DatabaseUnusableError(Exception):
    """The database cannot serve as the gateway's; the message says why and what to do."""


class Store(Protocol):
    """Runs use cases."""

    async def write(
        self, operation: Callable[Concatenate[Transaction, Instant, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation and return its result once it is durable. Raises StoreUnavailableError.

        In which thread it runs is the store's own business, so it knows nothing of the event loop's state.
        An exception of the operation undoes its own changes and is raised here. Cancelling the caller does not undo
        an operation that has begun.
        """
        ...

    async def write_many(
        self, operation: Callable[Concatenate[Transaction, Instant, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Do as `write`, for an operation that changes many rows: the event loop gets its turns meanwhile."""
        ...

    def add_pre_commit_hook(self, topic: str, prepare: PrepareHook) -> None:
        """Let what `prepare` returns run at the end of every transaction that notifies `topic`, and commit with it.

        So an order can be leased in the very commit that files it.
        """
        ...

    async def read(
        self, operation: Callable[Concatenate[ReadTransaction, Instant, P], T], /, *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation that only reads, on a snapshot of what is committed. Raises StoreUnavailableError."""
        ...
