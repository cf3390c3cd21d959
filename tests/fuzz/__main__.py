"""`python -m tests.fuzz --seconds 60 [--target intent|pages]`, with atheris where it is installed, else Hypothesis.

Ends with status 1 where a property did not hold; atheris keeps the input in a file, which its last lines name. New
inputs that reach new code go to `.fuzz/`, and are where the next run begins.
"""

import argparse
import importlib.util
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz import intents, shop_pages

TARGETS = {"intent": intents.check, "pages": shop_pages.check}
FOLDER = Path(".fuzz")
CORPUS = Path(__file__).parent / "corpus"
MAX_INPUT = 4_096
MEMORY_MIB = 1_024
SECONDS_AN_INPUT = 60  # by the clock on the wall: a process of lowest priority once stood still for 8 s


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together (default 60)")
    parser.add_argument("--target", choices=TARGETS, help="only this one")
    asked = parser.parse_args()
    wanted = [asked.target] if asked.target else list(TARGETS)
    return max(_fuzz(target, max(1, asked.seconds // len(wanted))) for target in wanted)


def _fuzz(target: str, seconds: int) -> int:
    folder = FOLDER / target
    folder.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("atheris") is None:
        return _with_hypothesis(target, seconds)
    figures = FOLDER / f"{target}.json"
    figures.unlink(missing_ok=True)
    begun = time.monotonic()
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.fuzz.with_atheris", target, str(figures)),
            f"-max_total_time={seconds}",
            f"-max_len={MAX_INPUT}",
            f"-timeout={SECONDS_AN_INPUT}",
            f"-rss_limit_mb={MEMORY_MIB}",
            f"-artifact_prefix={FOLDER}/{target}-failed-",
            *("-verbosity=0", "-print_final_stats=1"),
            *(str(folder), str(CORPUS / target)),
        ],
        check=False,
    )
    outcomes = figures.read_text() if figures.exists() else "{}"
    lasted = f"{time.monotonic() - begun:.0f} s with atheris"
    print(f"fuzz: {target}: {sum(json.loads(outcomes).values())} inputs in {lasted}: {outcomes}")
    return 1 if done.returncode else 0


def _with_hypothesis(target: str, seconds: int) -> int:
    """Without atheris nothing guides the inputs to new code; but there are many."""
    until = time.monotonic() + seconds
    outcomes: Counter[str] = Counter()

    @settings(
        max_examples=2_000,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.binary(max_size=MAX_INPUT))
    def tried(data: bytes) -> None:
        if time.monotonic() < until:
            outcomes[TARGETS[target](data)] += 1

    while time.monotonic() < until:
        try:
            tried()
        except AssertionError as error:
            print(f"fuzz: {target}: {error}")
            return 1
    print(f"fuzz: {target}: {outcomes.total()} inputs in {seconds} s with Hypothesis: {json.dumps(outcomes)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
