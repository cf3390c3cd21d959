"""`python -m tests.faults --rounds N` or `--minutes N`: the chaos test, its figures, and what it found.

Ctrl-C ends it after the round that it is in, with the judgement of all rounds.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.chaos import chaos_test


async def main(asked: argparse.Namespace) -> int:
    began = time.monotonic()
    enough = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, enough.set)
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        async with chaos_test(Path(folder), asked.seed, gateways=asked.gateways if asked.postgres else None) as chaos:
            if asked.minutes:
                await chaos.soak(asked.minutes * 60)
            for number in range(1, asked.rounds + 1 if not asked.minutes else 1):
                if enough.is_set():
                    break
                await chaos.round(number)
                if number % 20 == 0:
                    print(f"round {number}: {dict(chaos.figures)}", flush=True)
            kept = await chaos.judge_books()
            print(f"{len(chaos.promises.submits)} tasks were judged")
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
    parser.add_argument("--postgres", action="store_true", help="the gateways' database is on a PostgreSQL server")
    parser.add_argument("--gateways", type=int, default=1, help="how many share it (default 1; more need --postgres)")
    given = parser.parse_args()
    if given.gateways > 1 and not given.postgres:
        parser.error("several gateways need --postgres")
    sys.exit(asyncio.run(main(given)))
