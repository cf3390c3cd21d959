"""Evidence on real files: the layout, what meta.json says, and that everything is flushed before it counts."""

import hashlib
import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.worker.virtual import START
from worker.evidence.store import DiskSpace, EvidenceStore
from worker.journal.records import EvidenceFile
from worker.orders.state import OrderState
from worker.sites.port import Page

PAGE = Page("https://shop.example/cart", "GET", 200, "<p>カート".encode())


def keep(
    store: EvidenceStore, folder: str, step: str = "02-cart-check", png: bytes | None = None
) -> list[EvidenceFile]:
    return store.keep(folder, step, PAGE, png=png, png_missing_because="no browser", at=START, state=OrderState.IN_CART)


def test_a_page_becomes_files_that_meta_json_describes(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path)
    folder = store.choose_run_folder("po-1", recovered=False, lease_count=1)
    files = keep(store, folder, png=b"png")

    assert [(file.path, file.evidence_ref) for file in files] == [
        ("po-1/02-cart-check.html", "po-1/02-cart-check"),
        ("po-1/02-cart-check.png", "po-1/02-cart-check"),
        ("po-1/02-cart-check.meta.json", "po-1/02-cart-check"),
    ]
    for file in files:
        data = (tmp_path / file.path).read_bytes()
        assert (file.size, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert json.loads((tmp_path / "po-1/02-cart-check.meta.json").read_text()) == {
        "request_url": "https://shop.example/cart",
        "method": "GET",
        "http_status": 200,
        "timestamp": "2026-07-27T09:00:00.000000Z",
        "order_state": "in_cart",
        "sha256": {
            "02-cart-check.html": hashlib.sha256(PAGE.html).hexdigest(),
            "02-cart-check.png": hashlib.sha256(b"png").hexdigest(),
        },
    }
    assert sorted(file.name for file in (tmp_path / "po-1").iterdir()) == [
        "02-cart-check.html",
        "02-cart-check.meta.json",
        "02-cart-check.png",
    ]


def test_without_a_picture_meta_json_says_why(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path)
    files = keep(store, store.choose_run_folder("po-1", recovered=False, lease_count=1))
    assert [Path(file.path).suffix for file in files] == [".html", ".json"]
    meta = json.loads((tmp_path / files[1].path).read_text())
    assert meta["png_missing_because"] == "no browser"


def test_nothing_is_written_over(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path)
    folder = store.choose_run_folder("po-1", recovered=False, lease_count=1)
    refs = [keep(store, folder)[0].evidence_ref for _ in range(3)]
    assert refs == ["po-1/02-cart-check", "po-1/02-cart-check-2", "po-1/02-cart-check-3"]


def test_each_run_has_a_folder_of_its_own(tmp_path: Path) -> None:
    store = EvidenceStore(tmp_path)
    assert store.choose_run_folder("po-1", recovered=False, lease_count=1) == "po-1"
    keep(store, "po-1")
    assert store.choose_run_folder("po-1", recovered=True, lease_count=2) == "po-1/r2"
    assert store.choose_run_folder("po-1", recovered=True, lease_count=2) == "po-1/r3"
    assert store.choose_run_folder("po-1", recovered=True, lease_count=5) == "po-1/r5"
    assert store.choose_run_folder("po-2", recovered=True, lease_count=1) == "po-2/r2"
    assert store.choose_run_folder("po-1", recovered=False, lease_count=1) == "po-1/r4"


@pytest.mark.parametrize("task_id", ["", "..", "../x", "a/b", "/etc", ".hidden", "a\n", "x" * 129, "é"])
def test_an_unsafe_task_id_never_becomes_a_path(tmp_path: Path, task_id: str) -> None:
    with pytest.raises(ValueError, match="may not become a path"):
        EvidenceStore(tmp_path).choose_run_folder(task_id, recovered=False, lease_count=1)
    assert list(tmp_path.iterdir()) == []


def test_each_file_is_flushed_before_its_name_appears_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def seen_fsync(descriptor: int) -> None:
        done.append("flush " + Path(f"/proc/self/fd/{descriptor}").readlink().name)
        fsync(descriptor)

    def seen_rename(source: Path, target: Path) -> Any:
        done.append(f"name {target.name}")
        return rename(source, target)

    store = EvidenceStore(tmp_path)
    folder = store.choose_run_folder("po-1", recovered=False, lease_count=1)
    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(Path, "rename", seen_rename)
    keep(store, folder, png=b"png")

    assert done == [
        "flush .02-cart-check.html.tmp",
        "name 02-cart-check.html",
        "flush .02-cart-check.png.tmp",
        "name 02-cart-check.png",
        "flush .02-cart-check.meta.json.tmp",
        "name 02-cart-check.meta.json",
        "flush po-1",
    ]


def test_low_disk_is_told_with_its_reason(tmp_path: Path) -> None:
    assert DiskSpace((tmp_path,), min_free_mib=0).shortage() is None
    shortage = DiskSpace((tmp_path,), min_free_mib=10**9).shortage()
    assert shortage is not None
    assert f"MiB free in {tmp_path}" in shortage


def held_in(folder: Path) -> list[int]:
    """Bytes that this process holds in files of the folder that have no name."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            if str(link.readlink()).startswith(f"{folder}/") and str(link.readlink()).endswith(" (deleted)"):
                found.append(link.stat().st_blocks * 512)
    return found


def test_space_is_reserved_in_every_folder_and_given_back(tmp_path: Path) -> None:
    folders = tmp_path / "evidence", tmp_path / "journal"
    for folder in folders:
        folder.mkdir()
    reserve = DiskSpace(folders, min_free_mib=0).reserve()
    reserve.take()
    for folder in folders:
        assert [size >= 8 * 1024 * 1024 for size in held_in(folder)] == [True]
        assert list(folder.iterdir()) == [], "without a name there is nothing to be left over"
    reserve.release()
    reserve.release()
    assert [held_in(folder) for folder in folders] == [[], []]


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".reserve-po-1").write_bytes(b"x")
    (tmp_path / "po-1").mkdir()
    (tmp_path / "po-1/.02-cart-check.html.tmp").write_bytes(b"half")
    (tmp_path / "po-1/01-cart-add.html").write_bytes(b"whole")
    DiskSpace((tmp_path,), min_free_mib=0).remove_leftovers()
    EvidenceStore(tmp_path).choose_run_folder("po-1", recovered=True, lease_count=2)
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.glob("**/*")) if path.is_file()] == [
        "po-1/01-cart-add.html"
    ]


@pytest.mark.parametrize("which", ["evidence", "journal"])
def test_a_folder_that_cannot_be_written_is_told_whichever_it_is(tmp_path: Path, which: str) -> None:
    folders = tmp_path / "evidence", tmp_path / "journal"
    for folder in folders:
        folder.mkdir()
    space = DiskSpace(folders, min_free_mib=0)
    assert space.shortage() is None
    (tmp_path / which).rmdir()
    assert str(space.shortage()).startswith(f"{tmp_path / which} cannot be written: No such file")


def test_a_limit_of_file_sizes_is_told_before_the_journal_meets_it(tmp_path: Path) -> None:
    """In a process of its own, since a limit cannot always be lifted again."""
    script = (
        "import resource, sys; from pathlib import Path; from worker.evidence.store import DiskSpace\n"
        "folder = Path(sys.argv[1]); journal = folder / 'trading.db'; journal.touch()\n"
        "import os; os.truncate(journal, 30 << 20)\n"
        "space = DiskSpace((folder,), min_free_mib=0, grows=journal)\n"
        "print(space.shortage())\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (32 << 20, 32 << 20))\n"
        "print(space.shortage())"
    )
    said = subprocess.run([sys.executable, "-c", script, tmp_path], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["None", f"{tmp_path} cannot be written: File too large"]
