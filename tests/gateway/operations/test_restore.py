"""Putting a backup back, and what a restore does to open tasks."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.leases import Lease, Via
from gateway.domain.refusals import Reason
from gateway.domain.states import OrderState, Placement, TaskStatus
from gateway.restore import Restored, restore
from gateway.store.port import DatabaseUnusableError
from tests.gateway.operations.backups import save
from tests.gateway.operations.person import Person, bring
from tests.gateway.support.book import LOOK, Book, reason, refused
from tests.gateway.support.dump import dump

pytestmark = pytest.mark.sqlite


def into(backup: Path, book: Book) -> Restored:
    """Restore a backup as the database of a stopped gateway, and start that gateway again."""
    book.run(book.clock.save)
    book.database.close()
    done = restore(backup, book.path, machine=book.time.machine())
    book.restart_from_closed()
    return done


def test_no_restore_while_the_gateway_runs(tmp_path: Path, book: Book) -> None:
    book.submit()
    backup = save(book, tmp_path / "b")
    with pytest.raises(DatabaseUnusableError, match="stop that one first"):
        restore(backup, book.path)
    assert book.status() is TaskStatus.QUEUED


def test_the_old_database_is_kept_whole_beside_the_new_one(tmp_path: Path, book: Book) -> None:
    book.submit("po-1")
    backup = save(book, tmp_path / "b")
    book.submit("po-2")
    old = dump(book.path)
    done = into(backup, book)
    assert done.set_aside is not None
    assert dump(done.set_aside) == old
    assert [row["task_id"] for row in book.rows("SELECT task_id FROM tasks")] == ["po-1"]


@pytest.mark.parametrize("last_step", ["rename", "link"])
def test_a_restore_that_dies_on_its_way_leaves_the_old_database(
    tmp_path: Path, book: Book, monkeypatch: pytest.MonkeyPatch, last_step: str
) -> None:
    book.submit("po-1")
    backup = save(book, tmp_path / "b")
    book.submit("po-2")
    book.database.close()

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(*((Path, "rename", dies) if last_step == "rename" else ("os.link", dies)))
        with pytest.raises(KeyboardInterrupt):
            restore(backup, book.path, machine=book.time.machine())
    book.restart_from_closed()
    assert [row["task_id"] for row in book.rows("SELECT task_id FROM tasks")] == ["po-1", "po-2"]
    assert book.rows("SELECT * FROM pauses") == []
    assert list(tmp_path.glob("*.restoring*")) == []


def test_a_restore_through_a_symbolic_link_replaces_the_file_itself(tmp_path: Path, book: Book) -> None:
    book.submit("po-1")
    backup = save(book, tmp_path / "b")
    book.submit("po-2")
    book.database.close()
    link = tmp_path / "link.db"
    link.symlink_to(book.path)
    restore(backup, link, machine=book.time.machine())
    assert link.is_symlink()
    book.restart_from_closed()
    assert [row["task_id"] for row in book.rows("SELECT task_id FROM tasks")] == ["po-1"]


def test_what_root_restores_belongs_to_whom_the_database_belongs(
    tmp_path: Path, book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    backup = save(book, tmp_path / "backups")
    (tmp_path / "service").mkdir()
    target = tmp_path / "service" / "gateway.db"
    given: list[tuple[str, int, int]] = []

    def chown(path: int | Path, user: int, group: int) -> None:
        name = Path(f"/dev/fd/{path}").resolve().name if isinstance(path, int) else path.name
        given.append((name, user, group))

    if os.geteuid() == 0:
        os.chown(target.parent, 12_345, 12_346)  # so that it is not root whom the database belongs to
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", chown)
    restore(backup, target)
    owner = target.parent.stat()
    assert set(given) == {(name, owner.st_uid, owner.st_gid) for name in ("gateway.db.lock", "gateway.db.restoring")}


def test_a_damaged_database_can_be_replaced(tmp_path: Path, book: Book) -> None:
    book.submit("po-1")
    backup = save(book, tmp_path / "b")
    book.database.close()
    book.path.write_bytes(b"garbage" * 1000)
    book.path.with_name("gateway.db-wal").write_bytes(b"more garbage")
    done = restore(backup, book.path, machine=book.time.machine())
    book.restart_from_closed()
    assert book.status() is TaskStatus.STALE
    assert done.set_aside is not None
    assert done.set_aside.read_bytes().startswith(b"garbage")


@pytest.mark.parametrize(
    ("status", "leased"),
    [
        (TaskStatus.QUEUED, False),
        (TaskStatus.QUEUED, True),
        (TaskStatus.LEASED, True),
        (TaskStatus.RUNNING, True),
        (TaskStatus.STALE, True),
        (TaskStatus.NEEDS_HUMAN, True),  # not clicked then, so it may have been requeued since
    ],
)
def test_after_a_restore_every_open_task_counts_as_permitted(
    tmp_path: Path, book: Book, person: Person, status: TaskStatus, leased: bool
) -> None:
    bring(book, status, leased=leased)
    done = into(save(book, tmp_path / "b"), book)
    assert done.open_tasks == 1

    task = book.task()
    assert (task.status, task.placement) == (TaskStatus.STALE, Placement.POSSIBLE)
    assert task.submit_permitted_at == task.updated_at
    found = person.decision()
    assert found.summary.startswith("An order is possible: the gateway was restored at")
    assert found.settles_in == book.policy.permit_settle
    assert reason(person.fail()) is Reason.PERMIT_NOT_SETTLED

    # Nothing is dispatched until a person has looked; and even then no worker may click this order again.
    assert [(pause.site, pause.paused_by) for pause in person.pause()] == [(None, "restore")]
    person.requeue()
    assert book.open(book.request(session="session-after-restore")) is None
    person.resume()
    lease = book.open(book.request(session="session-after-restore"))
    assert isinstance(lease, Lease)
    assert lease.lease_count > 1, "a recovered lease"
    for _ in range(4):
        book.renew(lease)
        book.time.advance(book.policy.permit_settle / 4)
        book.renew(lease)
    look = replace(LOOK, begun_at=book.lease_age(lease))
    assert reason(book.permit(lease, attests=True, look=look)) is Reason.PERMIT_OTHER_JOURNAL


@pytest.mark.parametrize(
    ("status", "via"),
    [(TaskStatus.SUCCEEDED, Via.GRPC), (TaskStatus.FAILED, Via.GRPC), (TaskStatus.NEEDS_HUMAN, Via.REST)],
)
def test_a_restore_leaves_ended_tasks_as_they_are(tmp_path: Path, book: Book, status: TaskStatus, via: Via) -> None:
    bring(book, status, via=via)
    before = book.task()
    assert into(save(book, tmp_path / "b"), book).open_tasks == 0
    assert book.task() == before


def test_a_report_of_the_time_in_between_is_kept(tmp_path: Path, book: Book, person: Person) -> None:
    book.submit()
    backup = save(book, tmp_path / "b")
    lease = book.take()
    holder = book.holder(lease)
    into(backup, book)
    late = refused(book.report(lease, OrderState.PAID, sequence=1, terminal=True, holder=holder))
    assert late.recorded_late
    assert book.task().placement is Placement.CERTAIN
    assert {kind for kind, _ in book.alerts()} == {"task_stale", "late_report"}
