"""`make profile`: where the gateway's time goes under one kind of load, sampled from outside by py-spy.

`python -m bench.profile KIND SECONDS` prints the functions that the samples fell on and writes all of them, for
https://www.speedscope.app, to `profile-KIND.json` in the current folder.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.load import KINDS, SUBMISSIONS
from bench.processes import REPOSITORY, gateway
from demo.programs import ProgramError, end_on_signals

RATE: Final = 250
"""Samples a second."""
MOST: Final = 40
"""Functions that are printed."""
COUNTS: Final = {"wakeup": 40, "lease": 0}
"""Amounts a second of those loads that are no number of seconds."""


def main(kind: str, seconds: float) -> int:
    """Profile one kind of load. Status 1 if the gateway cannot be sampled, 2 for another kind."""
    console = Console(stderr=True)
    kinds = [*SUBMISSIONS, *(name for name in KINDS if name not in ("idle", "lease"))]
    if kind not in kinds:
        console.print(f"profile: KIND is one of {', '.join(kinds)}")
        return 2
    sampler = shutil.which("py-spy", path=str(Path(sys.executable).parent))
    if sampler is None:
        console.print("profile: py-spy is missing: pip install -r requirements/profile.txt")
        return 1
    end_on_signals()
    written = Path(f"profile-{kind}.json")
    folder = Path(tempfile.mkdtemp(prefix="order-gateway-profile-"))
    try:
        with gateway(folder) as (target, program), load(kind, seconds + 2, target):
            command = [sampler, "record", "--pid", str(program.process.pid), "--duration", f"{seconds:.0f}", "--rate"]
            command += [str(RATE), "--format", "speedscope", "--output", str(written)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 60)
            if done.returncode != 0:
                console.print("profile: the gateway could not be sampled; another's process is open to root alone, or")
                console.print("profile: to everybody with kernel.yama.ptrace_scope=0. py-spy said:")
                console.print(done.stderr.strip()[-500:], markup=False)
                return 1
    except ProgramError as error:
        console.print(f"profile: {error}", markup=False)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    show(json.loads(written.read_text("utf-8")), kind)
    console.print(f"profile: all samples are in {written}, for https://www.speedscope.app")
    return 0


@contextmanager
def load(kind: str, seconds: float, target: str) -> Iterator[None]:
    """That load, from a process of its own."""
    amount = seconds * COUNTS.get(kind, 1)
    client = subprocess.Popen(
        [sys.executable, "-m", "bench.load", kind, str(amount), target], cwd=REPOSITORY, stdout=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        client.terminate()
        client.wait()


def show(profile: Any, kind: str) -> None:
    """Print the functions, the most samples first: those they fell on, and those below which they fell."""
    names = [f"{frame['name']} ({frame['file']})" for frame in profile["shared"]["frames"]]
    own, within, total = counted([each["samples"] for each in profile["profiles"]], names)
    table = Table(title=f"{kind}: {total:,} samples of the threads that were at work", title_justify="left")
    for heading in ("itself", "with all it calls"):
        table.add_column(heading, justify="right")
    table.add_column("function")
    for name, count in own.most_common(MOST):
        table.add_row(f"{count / total:.1%}", f"{within[name] / total:.1%}", name)
    Console(width=140).print(table)


def counted(threads: Sequence[Sequence[Sequence[int]]], names: Sequence[str]) -> tuple[Counter[str], Counter[str], int]:
    """How many samples fell on each function, how many on it or below it, and how many there are."""
    own: Counter[str] = Counter()
    within: Counter[str] = Counter()
    stacks = [stack for samples in threads for stack in samples if stack]
    for stack in stacks:
        own[names[stack[-1]]] += 1
        within.update({names[frame] for frame in stack})
    return own, within, len(stacks)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], float(sys.argv[2])))
