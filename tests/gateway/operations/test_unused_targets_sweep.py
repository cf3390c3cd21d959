"""The sweep that forgets unused accounts: all of them, a few a transaction, and by the gateway that leads alone."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from gateway import targets
from gateway.composition import Sharing, build_gateway
from gateway.dispatch.notifier import Notifier
from gateway.domain.models import Actor, Submission
from gateway.orders.cancel import cancel
from gateway.orders.submit import submit
from gateway.store.gateways import OnlyGateway
from gateway.store.port import Store
from gateway.sweeps.sweep import Sweep
from gateway.sweeps.unused_targets import UnusedTargetsSweep
from tests.gateway.operations.book_store import BookStore
from tests.gateway.support.book import Book
from tests.gateway.support.core import Core, running_core

ACCOUNTS = "abcdefg"


def name(book: Book, account: str) -> None:
    """File an order of an account, and withdraw it."""
    book.submit(f"po-{account}", account=account)
    book.cancel(f"po-{account}")


@pytest.mark.parametrize("kept", ["", "a", "cd", "abc", "g", "fg", ACCOUNTS])
async def test_all_of_them_are_looked_at_however_many_are_kept(
    book: Book, monkeypatch: pytest.MonkeyPatch, kept: str
) -> None:
    monkeypatch.setattr("gateway.sweeps.unused_targets._BATCH", 2)
    for account in ACCOUNTS:
        name(book, account)
    book.connection.execute("UPDATE catalog_targets SET used_us = NULL")
    sweep = UnusedTargetsSweep(BookStore(book))
    assert await sweep.run_once() == {"forgotten": 0}
    for account in kept:  # what the catalogue waits for holds its account back, and its turn comes again
        book.connection.execute("INSERT INTO query_lanes VALUES ('rakuten', ?, 1)", (account,))
    book.time.advance(targets.UNUSED)
    assert await sweep.run_once() == {"forgotten": len(ACCOUNTS) - len(kept)}
    left = book.rows("SELECT account FROM catalog_targets ORDER BY account")
    assert "".join(row["account"] for row in left) == kept
    book.connection.execute("UPDATE query_lanes SET queued = 0")
    assert await sweep.run_once() == {"forgotten": len(kept)}
    assert book.rows("SELECT * FROM lanes") == book.rows("SELECT * FROM query_lanes") == []


def sweep_of(core: Core, leads: Callable[[], Awaitable[bool]]) -> Sweep:
    """The sweep as a gateway has it that shares its database."""
    fellows: Any = OnlyGateway("id", "name", "")
    streams: Any = None
    shared = Sharing(core.gateway.backups, leads, streams, fellows)
    store: Store = core.store
    made = build_gateway(store, core.gateway.clock, core.gateway.settings, Notifier(), sharing=shared)
    (sweep,) = (sweep for sweep in made.sweeps if sweep.name == "unused_targets")
    return sweep


async def test_the_gateway_that_leads_alone_forgets(tmp_path: Path) -> None:
    async def leads() -> bool:
        return True

    async def follows() -> bool:
        return False

    async with running_core(tmp_path / "gateway.db") as core:
        wanted = Submission("po-1", "rakuten", "{}", None, account="a")
        await core.store.write(submit, core.policy, wanted, Actor("upstream"))
        await core.store.write(cancel, "po-1", "why", Actor("upstream"))
        core.time.advance(targets.UNUSED + timedelta(seconds=1))
        assert await sweep_of(core, follows).run_once() == {}
        assert len(core.rows("SELECT * FROM catalog_targets")) == 1
        assert await sweep_of(core, leads).run_once() == {"forgotten": 1}
        assert core.rows("SELECT * FROM catalog_targets") == []
