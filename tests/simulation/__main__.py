"""`python -m tests.simulation --runs N [--seed FIRST]`: many runs, their figures; a failing one's timeline."""

import argparse
import sys
import time
from collections import Counter

from tests.simulation.run import simulate

FIGURES = (
    "gateway crashes", "worker crashes", "freezes", "cuts", "full disks", "lost requests", "lost answers",
    "duplicated requests", "event submit", "event lease", "event undo", "event expire", "event expire_now",
    "event reclaim", "event requeue", "event resolve", "event report_refused", "event permit", "second permits",
    "clicks", "orders placed", "payments", "duplicates",
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeline", action="store_true", help="print the timeline of each run")
    asked = parser.parse_args()
    counts: Counter[str] = Counter()
    seconds, failed, began = 0.0, 0, time.monotonic()
    for seed in range(asked.seed, asked.seed + asked.runs):
        result = simulate(seed)
        counts += result.counts
        seconds += result.seconds
        if result.violations or asked.timeline:
            print("\n".join(result.lines))
        if result.violations:
            failed += 1
            print(f"seed {seed}: " + "\n  ".join(result.violations))
    print(f"runs {asked.runs}, failed {failed}, virtual hours {seconds / 3600:.1f}, {time.monotonic() - began:.1f} s")
    print(", ".join(f"{name.removeprefix('event ')} {counts[name]}" for name in FIGURES))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
