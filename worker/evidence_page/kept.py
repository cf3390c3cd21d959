"""Reading what was kept: only files that the journal names, and only as they were written."""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from worker.journal.records import EvidenceFile


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file as the journal knows it. `data` None: it is gone, or no longer what was written."""

    file: EvidenceFile
    data: bytes | None

    @property
    def kind(self) -> str:
        """What follows the reference in its name: html, png or meta.json."""
        return self.file.path.removeprefix(self.file.evidence_ref).removeprefix(".")


@dataclass(frozen=True, slots=True)
class KeptPage:
    """One page that an order passed through, with its files."""

    ref: str
    files: tuple[KeptFile, ...]

    def data(self, kind: str) -> bytes | None:
        """Return the content of a file of it; None where there is none that is intact."""
        return next((kept.data for kept in self.files if kept.kind == kind), None)

    @property
    def meta(self) -> dict[str, Any]:
        """What was written down beside it; empty where that is gone, or no longer what was written."""
        data = self.data("meta.json")
        read = None if data is None else json.loads(data)
        return read if isinstance(read, dict) else {}


def kept_pages(root: Path, files: Sequence[EvidenceFile]) -> Iterator[KeptPage]:
    """Yield the pages of these files, which are read now, in their order."""
    for ref, of_page in groupby(sorted(files, key=lambda file: file.path), key=lambda file: file.evidence_ref):
        yield KeptPage(ref, tuple(KeptFile(file, read_intact(root, file)) for file in of_page))


def read_intact(root: Path, file: EvidenceFile) -> bytes | None:
    """Return a file's content; None unless it is a plain file with the very bytes that were written."""
    try:
        # Whatever a link leads to, or waits for a writer, is no evidence.
        descriptor = os.open(root / file.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as opened:
            data = opened.read(file.size + 1)
    except OSError:
        return None
    return data if len(data) == file.size and hashlib.sha256(data).hexdigest() == file.sha256 else None
