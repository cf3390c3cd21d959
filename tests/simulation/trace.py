"""What happened in a run, in words and in order; its digest tells whether two runs were the same."""

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path


class Trace:
    """Lines of a run. `now` gives virtual seconds; `folder` is the run's own, whose name is another in every run, so
    that no line tells it.
    """

    def __init__(self, now: Callable[[], float], folder: Path) -> None:
        self._now = now
        self._folder = f"{folder}/"
        self._start = now()
        self.lines: list[str] = []
        self.counts: Counter[str] = Counter()

    def __call__(self, who: str, what: str) -> None:
        what = what.replace(self._folder, "")
        self.lines.append(f"{self._now() - self._start:10.3f}  {who:<12} {what}")

    def count(self, name: str) -> None:
        self.counts[name] += 1

    @property
    def seconds(self) -> float:
        return self._now() - self._start

    def digest(self) -> str:
        """Stands for everything that happened and when."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()
