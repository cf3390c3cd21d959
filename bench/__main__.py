"""`make bench`: runs the benchmarks and prints each figure beside its floor and its goal.

`make bench-peers` runs those beside other queues, which `make bench` leaves out.
"""

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from bench.console_scenarios import CONSOLE_SCENARIOS
from bench.engine_scenarios import ENGINE_SCENARIOS
from bench.fleet_scenarios import FLEET_SCENARIOS
from bench.history import record, worse
from bench.http_scenarios import HTTP_SCENARIOS
from bench.peers.scenarios import PEER_SCENARIOS
from bench.query_scenarios import QUERY_SCENARIOS
from bench.result import Skipped, show
from bench.scenarios import FULL, NORMAL, QUICK, SCENARIOS
from bench.search_scenarios import SEARCH_SCENARIOS
from bench.target_scenarios import TARGET_SCENARIOS
from demo.programs import ProgramError, end_on_signals

OURS = (
    SCENARIOS
    | HTTP_SCENARIOS
    | QUERY_SCENARIOS
    | TARGET_SCENARIOS
    | SEARCH_SCENARIOS
    | CONSOLE_SCENARIOS
    | ENGINE_SCENARIOS
    | FLEET_SCENARIOS
)
ALL = OURS | PEER_SCENARIOS
BUSY = 0.5


def main() -> int:
    """Runs the scenarios named, or all but the peers. Status 0 if everything ran; a missed goal is told, not failed."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=...", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(ALL)}; none: all but peers")
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--quick", action="store_true", help="fewer rounds and a smaller database")
    amount.add_argument("--full", action="store_true", help="ten million tasks, a million of them queued; takes hours")
    parser.add_argument("--record", action="store_true", help="append the ratios to bench/history.jsonl")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    arguments = parser.parse_args()
    unknown = set(arguments.scenarios) - set(ALL)
    if unknown:
        parser.error(f"unknown scenario: {', '.join(sorted(unknown))}")
    end_on_signals()
    size = QUICK if arguments.quick else FULL if arguments.full else NORMAL
    begun = time.monotonic()
    progress = Console(stderr=True)
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > BUSY * cores:
        progress.print(
            f"bench: the machine is busy (load {load:.1f} on {cores} cores): rows with a spread were measured in turn "
            "with what they are compared with, and mean something within that spread; the others are of this hour",
            soft_wrap=True,
        )  # fmt: skip
    folder = Path(tempfile.mkdtemp(prefix="order-gateway-bench-"))
    results = []
    status = 0
    try:
        for name in arguments.scenarios or OURS:
            progress.print(f"{time.monotonic() - begun:5.0f} s  {name} (load {os.getloadavg()[0]:.1f})")
            try:
                results += ALL[name](size, folder / name)
            except Skipped as missing:
                progress.print(f"bench: {name} is skipped: {missing}", markup=False, soft_wrap=True)
            shutil.rmtree(folder / name, ignore_errors=True)
        shutil.rmtree(folder)
        progress.print(f"{time.monotonic() - begun:5.0f} s  done")
    except (ProgramError, RuntimeError) as error:
        progress.print(f"bench: {error}", markup=False)
        progress.print(f"bench: logs are in {folder}", markup=False)
        status = 1
    except KeyboardInterrupt:
        progress.print("bench: interrupted")
        status = 130
    for line in worse(results):
        progress.print(f"bench: worse than before: {line}", markup=False, soft_wrap=True)
    if arguments.record and results:
        record(results)
    if arguments.json:
        print(json.dumps({"quick": arguments.quick, "results": [result.as_json() for result in results]}, indent=2))
    elif results:
        show(results, Console(width=max(120, Console().width)))
    return status


if __name__ == "__main__":
    sys.exit(main())
