"""Evidence: the pages an order passed through, as files (docs/specification.md#evidence).

Layout: `{evidence_dir}/{task_id}/NN-step.{html,png,meta.json}`; a recovered run writes into `r2/`, `r3/` … of it, and
no file is ever written over. Each file is written under a temporary name, flushed, renamed, and its folder flushed:
when `keep` returns, the evidence is on disk. `meta.json` comes last, so it never names a file that is not there.
"""

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from worker.clock import utc_text
from worker.journal.records import EvidenceFile
from worker.orders.state import OrderState
from worker.sites.port import Page

_TASK_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_MIB = 1024 * 1024
RESERVED_BYTES = 8 * _MIB


class Step(StrEnum):
    """Steps that leave evidence, by the names of their files."""

    VERIFY = "00-verify"
    CART_ADD = "01-cart-add"
    CART_CHECK = "02-cart-check"
    ORDER_CONFIRM = "03-order-confirm"
    ORDER_SUBMIT = "04-order-submit"
    PAYMENT = "05-payment"


def monitor_step(state: OrderState) -> str:
    """Return the name of the evidence that the monitor keeps for a state."""
    return f"06-monitor-{state}"


class EvidenceStore:
    """The evidence folder of this worker."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def choose_run_folder(self, task_id: str, *, recovered: bool, lease_count: int) -> str:
        """Where a run keeps its evidence, relative to the root: the task's own folder for the first run, else the
        first free one of `r2`, `r3` … from the lease's number on. The folder exists afterwards.
        """
        if not _TASK_ID.fullmatch(task_id):
            raise ValueError("a task_id that may not become a path")
        task_folder = self._root / task_id
        for left in task_folder.glob("**/.*.tmp"):
            left.unlink()  # of a run that was killed while it wrote
        if not recovered and not (task_folder.exists() and any(task_folder.iterdir())):
            _make_folder(task_folder)
            return task_id
        number = max(2, lease_count)
        while (task_folder / f"r{number}").exists():
            number += 1
        _make_folder(task_folder / f"r{number}")
        return f"{task_id}/r{number}"

    def keep(
        self,
        folder: str,
        step: str,
        page: Page,
        *,
        png: bytes | None,
        png_missing_because: str | None,
        at: datetime,
        state: OrderState,
    ) -> list[EvidenceFile]:
        """Write one page. The evidence_ref stands on each returned file; a step that comes again gets `-2`, `-3` ….

        `png_missing_because` stands in meta.json where there is no PNG. Raises OSError, for example on a full disk.
        """
        _make_folder(self._root / folder)
        name = self._free_name(folder, step)
        contents = {"html": page.html} if png is None else {"html": page.html, "png": png}
        hashes = {f"{name}.{kind}": hashlib.sha256(data).hexdigest() for kind, data in contents.items()}
        meta: dict[str, Any] = {
            "request_url": page.url,
            "method": page.method,
            "http_status": page.http_status,
            **({} if page.location is None else {"location": page.location}),
            "timestamp": utc_text(at),
            "order_state": state.value,
            "sha256": hashes,
        }
        if png is None:
            meta["png_missing_because"] = png_missing_because
        contents["meta.json"] = _json_bytes(meta)
        ref = f"{folder}/{name}"
        for kind, data in contents.items():
            _write_durably(self._root / f"{ref}.{kind}", data)
        _flush_folder(self._root / folder)
        return [
            EvidenceFile(f"{ref}.{kind}", ref, hashlib.sha256(data).hexdigest(), len(data))
            for kind, data in contents.items()
        ]

    def _free_name(self, folder: str, step: str) -> str:
        name, number = step, 1
        while any((self._root / folder / f"{name}.{kind}").exists() for kind in ("html", "png", "meta.json")):
            number += 1
            name = f"{step}-{number}"
        return name


class DiskSpace:
    """Free disk where evidence and journal lie: no new order without it, no click without a reserve of it."""

    def __init__(self, folders: tuple[Path, ...], *, min_free_mib: int, grows: Path | None = None) -> None:
        """`grows`: the file that must be able to grow (the journal); a limit of file sizes may stand in its way."""
        self._folders = folders
        self._min_free_mib = min_free_mib
        self._grows = grows

    def shortage(self) -> str | None:
        """Return why no new order may be taken now; None if there is room for files of the needed sizes."""
        try:
            for folder in self._folders:
                free = shutil.disk_usage(folder).free // _MIB
                if free < self._min_free_mib:
                    return f"only {free} MiB free in {folder}, at least {self._min_free_mib} MiB are needed"
            probe = self.reserve()
            try:
                probe.take()
            finally:
                probe.release()
        except OSError as error:
            return f"{error.filename or 'the evidence'} cannot be written: {error.strerror}"
        return None

    def reserve(self) -> "Reserve":
        """Space for what the click will have to write down; not taken yet."""
        size = self._grows.stat().st_size if self._grows is not None and self._grows.exists() else 0
        return Reserve(self._folders, reach=size + RESERVED_BYTES)

    def remove_leftovers(self) -> None:
        """Remove what a former version left when it was killed at a click; a reserve has no name any more."""
        for folder in self._folders:
            for left in folder.glob(".reserve-*"):
                with suppress(OSError):
                    left.unlink()


class Reserve:
    """Files that hold disk space until it is needed. They have no name, so they are gone with the process."""

    def __init__(self, folders: Sequence[Path], *, reach: int) -> None:
        """`reach`: the size, in bytes, that a file of these folders must be able to have; it takes no space."""
        self._folders = folders
        self._reach = reach
        self._descriptors: list[int] = []

    def take(self) -> None:
        """Allocates the files. Raises OSError, with the folder, if there is no room."""
        for folder in self._folders:
            try:
                self._take_in(folder)
            except OSError as error:
                raise OSError(error.errno, error.strerror, str(folder)) from error

    def _take_in(self, folder: Path) -> None:
        path = folder / f".reserve-{os.getpid()}-{id(self)}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._descriptors.append(descriptor)
        path.unlink()
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, RESERVED_BYTES)
        else:
            os.write(descriptor, bytes(RESERVED_BYTES))
        os.pwrite(descriptor, b"\0", self._reach)

    def release(self) -> None:
        """Give the space back, for what now has to be written."""
        while self._descriptors:
            os.close(self._descriptors.pop())


def _json_bytes(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace") + b"\n"


def _write_durably(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


def _make_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    missing = [folder]
    while not missing[-1].parent.exists():
        missing.append(missing[-1].parent)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for made in missing:
        _flush_folder(made.parent)


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
