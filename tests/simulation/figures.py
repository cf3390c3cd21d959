"""What many runs are counted by, in one line for `make test` and for `make simulate`."""

from collections import Counter
from collections.abc import Mapping

NAMES = (
    "gateway crashes", "worker crashes", "freezes", "cuts", "full disks", "lost requests", "lost answers",
    "duplicated requests", "event submit", "event lease", "event undo", "event expire", "event expire_now",
    "event reclaim", "event requeue", "event withdraw", "event resolve", "event report_refused", "event permit",
    "second permits", "clicks", "orders placed", "payments", "duplicates",
)  # fmt: skip


def told(runs: int, seconds: float, counts: Mapping[str, int]) -> str:
    """Runs, their virtual length in seconds, and what happened in them; "duplicates 0" is in it."""
    counts = Counter(counts)
    happened = ", ".join(f"{name.removeprefix('event ')} {counts[name]:,}" for name in NAMES)
    return f"runs {runs:,}, virtual hours {seconds / 3600:,.1f}, {happened}"
