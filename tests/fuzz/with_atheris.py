"""One target under atheris: `python -m tests.fuzz.with_atheris TARGET FIGURES` and flags of libFuzzer.

libFuzzer ends the process as it likes, so the figures (how many inputs came out how) are written to a file as it goes.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["gateway.domain", "worker.orders.intent", "worker.sites", "tests.fuzz"]):
    from tests.fuzz import intents, shop_pages

TARGETS = {"intent": intents.check, "pages": shop_pages.check}
BETWEEN_FIGURES = 50


def main() -> None:
    """Fuzzes until a flag of libFuzzer, or a property that does not hold, ends it."""
    check, figures = TARGETS[sys.argv.pop(1)], Path(sys.argv.pop(1))
    outcomes: Counter[str] = Counter()

    def try_one(data: bytes) -> None:
        outcomes[check(data)] += 1
        if outcomes.total() % BETWEEN_FIGURES == 0:
            figures.write_text(json.dumps(outcomes))

    atheris.Setup(sys.argv, try_one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
