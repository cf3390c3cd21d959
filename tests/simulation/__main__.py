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
from pathlib import Path

from tests.simulation.figures import not_reached, reached, told
from tests.simulation.layout import World
from tests.simulation.mutants.hunt import MOST_RUNS, hunt
from tests.simulation.mutants.registry import MUTANTS, WORLDS
from tests.simulation.run import simulate
from tests.simulation.world import Result

ENOUGH = 100
"""So many runs must have reached everything."""


def results(seeds: range, world: World, jobs: int) -> Iterator[Result]:
    """Yields what came of each seed, in any order."""
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        yield from pool.imap_unordered(partial(simulate, world=world), seeds, chunksize=10)


def run_many(seeds: range, world: World, jobs: int) -> int:
    """Runs the seeds in a kind of world and prints what happened; returns how many runs failed."""
    counts: Counter[str] = Counter()
    seconds, failed, began = 0.0, 0, time.monotonic()
    for done, result in enumerate(results(seeds, world, jobs), start=1):
        counts += result.counts
        seconds += result.seconds
        if done % 1_000 == 0:
            print(f"{world}: {done:,} of {len(seeds):,}", flush=True)
        if result.violations:
            failed += 1
            print("\n".join(result.lines))
            print(f"{world}, seed {result.seed}: " + "\n  ".join(result.violations), flush=True)
    minutes = (time.monotonic() - began) / 60
    print(f"{world}: failed {failed}, in {minutes:.1f} minutes")
    print(told(len(seeds), seconds, counts))
    print(reached(counts))
    if len(seeds) >= ENOUGH and (never := not_reached(world, counts)):
        print(f"never reached: {', '.join(never)}")
        failed += 1
    return failed


def run_mutants(seed: int, jobs: int, only: str, record: Path | None) -> int:
    """Hunts every mutant whose name contains `only`; prints the table and returns how many survive."""
    names = [name for name in MUTANTS if only in name]
    began, table = time.monotonic(), []
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        guilty = {}
        for world in sorted({WORLDS[name] for name in names}):
            for result in pool.imap(partial(simulate, world=world), range(seed, seed + MOST_RUNS)):
                if result.violations:
                    guilty[world, result.seed] = result.violations[0]
        for (world, number), why in guilty.items():
            print(f"{world}, seed {number} is guilty without any mutant, so it shows nothing: {why}")
        print(f"{'mutant':42s} {'runs':>5s}  found by", flush=True)
        for found in pool.imap(partial(hunt, seed, frozenset(guilty)), names):
            table.append(found)
            runs, why = (str(found.runs), found.why) if found.runs else ("-", "SURVIVES")
            print(f"{found.name:42s} {runs:>5s}  {why}", flush=True)
    survivors = sum(not found.runs for found in table)
    minutes = (time.monotonic() - began) / 60
    print(f"{len(names)} mutants from seed {seed}, {survivors} survive, in {minutes:.1f} minutes")
    if record is not None:
        record.write_text("".join(found.row() for found in table), "utf-8")
    return survivors + len(guilty)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--runs", type=int, default=500, help="how many lives in each kind of world (default 500)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: all cores)")
    parser.add_argument("--world", type=World, choices=World, help="the kind of world (default: one after the other)")
    parser.add_argument("--timeline", action="store_true", help="print the timeline of the one seed")
    parser.add_argument("--mutants", action="store_true", help="take out one safeguard after the other")
    parser.add_argument("--only", default="", help="with --mutants: those whose names contain this")
    parser.add_argument("--table", type=Path, help="with --mutants: a file for the table, in Markdown")
    asked = parser.parse_args()
    if asked.timeline:
        result = simulate(asked.seed, asked.world or World.ALONE)
        print("\n".join([*result.lines, *result.violations]))
        return bool(result.violations)
    if asked.mutants:
        return bool(run_mutants(asked.seed, asked.jobs, asked.only, asked.table))
    seeds = range(asked.seed, asked.seed + asked.runs)
    worlds = [asked.world] if asked.world else [*World]
    return bool(sum(run_many(seeds, world, asked.jobs) for world in worlds))


if __name__ == "__main__":
    sys.exit(main())
