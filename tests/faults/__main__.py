"""`python -m tests.faults --rounds N` or `--minutes N`: the chaos test, its figures, and what it found."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.chaos import chaos_test


async def main(asked: argparse.Namespace) -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        async with chaos_test(Path(folder), asked.seed) as chaos:
            if asked.minutes:
                await chaos.soak(asked.minutes * 60)
            for number in range(1, asked.rounds + 1 if not asked.minutes else 1):
                await chaos.round(number)
                if number % 20 == 0:
                    print(f"round {number}: {dict(chaos.figures)}", flush=True)
            kept = await chaos.judge_books()
            figures, violations = chaos.figures, chaos.violations
        logs = "\n".join(log.read_text()[-4_000:] for log in Path(folder).glob("*.log")) if violations else ""
    print(logs)
    print(
        f"{time.monotonic() - began:.0f} s; " + ", ".join(f"{name} {count}" for name, count in sorted(figures.items()))
    )
    print(kept)
    print(f"duplicates {figures['duplicates']}, violations {len(violations)}")
    for violation in violations:
        print(f"  {violation}")
    return 1 if violations else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="rounds of kills and restarts (default 20)")
    parser.add_argument("--minutes", type=float, default=0.0, help="instead of rounds: so many minutes under load")
    parser.add_argument("--seed", type=int, default=1, help="of what is killed when (default 1)")
    sys.exit(asyncio.run(main(parser.parse_args())))
