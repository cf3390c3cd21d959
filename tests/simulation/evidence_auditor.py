"""Judges the evidence on the workers' disks: there before it is mirrored, and never changed after."""

import hashlib
import json
from pathlib import Path

from tests.simulation.books import Books


class EvidenceAuditor:
    """Looks at the files themselves."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._seen: dict[Path, str] = {}

    def must_be_there(self, task_id: str, ref: str | None) -> None:
        """What the gateway mirrors lies whole on a worker's disk."""
        if ref is None:
            return
        metas = [meta for worker in self._books.workers if (meta := worker.evidence_dir / f"{ref}.meta.json").exists()]
        if not any(_is_whole(meta) for meta in metas):
            self._books.broken(f"{task_id}: the gateway mirrors {ref}, which is not on any worker's disk")
        for meta in metas:
            self._seen.setdefault(meta, _digest(meta))

    def judge_end(self) -> None:
        """Nothing that was mirrored has been written over."""
        for meta, digest in self._seen.items():
            if _digest(meta) != digest:
                self._books.broken(f"{meta.parent.name}/{meta.name} was written over after it was mirrored")


def _is_whole(meta: Path) -> bool:
    return all((meta.parent / name).exists() for name in json.loads(meta.read_text("utf-8"))["sha256"])


def _digest(meta: Path) -> str:
    pages = json.loads(meta.read_text("utf-8"))["sha256"]
    parts = [meta.read_bytes(), *((meta.parent / name).read_bytes() for name in pages if (meta.parent / name).exists())]
    return hashlib.sha256(b"".join(parts)).hexdigest()
