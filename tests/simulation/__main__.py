"""`python -m tests.simulation --runs N [--seed FIRST]`: many runs, their figures, and the timeline of any that fails.

`--mutants` runs each variant that lacks a safeguard until the simulation finds it guilty, and tells how many runs that
took.
"""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial

from tests.simulation.figures import told
from tests.simulation.mutants import MUTANTS, runs_until_found
from tests.simulation.run import Result, simulate


def results(seeds: range, jobs: int) -> Iterator[Result]:
    """Yields what came of each seed, in any order."""
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(simulate, seeds, chunksize=10)


def run_many(seeds: range, jobs: int) -> int:
    """Runs the seeds and prints what happened; returns how many runs failed."""
    counts: Counter[str] = Counter()
    seconds, failed, began = 0.0, 0, time.monotonic()
    for done, result in enumerate(results(seeds, jobs), start=1):
        counts += result.counts
        seconds += result.seconds
        if done % 1_000 == 0:
            print(f"{done:,} of {len(seeds):,}", flush=True)
        if result.violations:
            failed += 1
            print("\n".join(result.lines))
            print(f"seed {result.seed}: " + "\n  ".join(result.violations), flush=True)
    minutes = (time.monotonic() - began) / 60
    print(f"failed {failed}, in {minutes:.1f} minutes")
    print(told(len(seeds), seconds, counts))
    return failed


def run_mutants(seed: int, jobs: int) -> int:
    """Hunts every mutant; returns how many survive."""
    survivors = 0
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for name, (runs, why) in zip(MUTANTS, pool.imap(partial(runs_until_found, seed), MUTANTS), strict=True):
            survivors += not runs
            print(f"{name:38s} {f'{runs:5d} runs  {why}' if runs else 'SURVIVES'}", flush=True)
    return survivors


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeline", action="store_true", help="print the timeline of the one seed")
    parser.add_argument("--mutants", action="store_true")
    asked = parser.parse_args()
    if asked.timeline:
        result = simulate(asked.seed)
        print("\n".join([*result.lines, *result.violations]))
        return bool(result.violations)
    if asked.mutants:
        return bool(run_mutants(asked.seed, asked.jobs))
    return bool(run_many(range(asked.seed, asked.seed + asked.runs), asked.jobs))


if __name__ == "__main__":
    sys.exit(main())
