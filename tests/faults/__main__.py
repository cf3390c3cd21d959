"""`python -m tests.faults --rounds N` or `--minutes N`: the siege, its figures, and what it found."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.chaos import siege


async def main(asked: argparse.Namespace) -> int:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="siege-") as folder:
        async with siege(Path(folder), asked.seed) as besieged:
            if asked.minutes:
                await besieged.soak(asked.minutes * 60)
            for number in range(1, asked.rounds + 1 if not asked.minutes else 1):
                await besieged.round(number)
                if number % 20 == 0:
                    print(f"round {number}: {dict(besieged.figures)}", flush=True)
            kept = await besieged.judge_books()
            figures, violations = besieged.figures, besieged.violations
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
