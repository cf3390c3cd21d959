"""Fails if a file of the tree names a package registry, holds a path of one machine, or leaves work for later."""

import re
import subprocess
import sys
from pathlib import Path

# A character class in each name keeps this file from finding itself.
FORBIDDEN = {
    "a package registry's host": re.compile(
        r"[p]ypi\.org|[p]ythonhosted|[r]egistry\.npmjs|[p]roxy\.golang\.org|repo1?\.[m]aven\.org|[c]rates\.io|[d]eb\.debian\.org"
    ),
    "an absolute path of one machine": re.compile(r"(?<![\w./-])/(?:[h]ome|[r]oot|[U]sers|[w]ork)/"),
    "work left for later": re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X])\b"),
}
GENERATED = Path("clients/python/ordergateway/v1")
LONGEST_MODULE = 450
# A state machine of Hypothesis is one class, and cannot be spread over modules.
LONGEST_TEST_MODULE = 600


def tracked_files() -> list[Path]:
    """Files that are committed or about to be: tracked ones, and new ones that git does not ignore."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - git of the PATH
        check=True,
        capture_output=True,
    )
    return [path for name in listing.stdout.decode().split("\0") if name and (path := Path(name)).is_file()]


def findings(path: Path) -> list[str]:
    """What is wrong in one file, a line each."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []
    found = [
        f"{path}:{number}: {what}: {line.strip()[:120]}"
        for number, line in enumerate(lines, 1)
        for what, pattern in FORBIDDEN.items()
        if pattern.search(line)
    ]
    longest = LONGEST_TEST_MODULE if path.parts[0] == "tests" else LONGEST_MODULE
    if path.suffix == ".py" and not path.is_relative_to(GENERATED) and len(lines) > longest:
        found.append(f"{path}: {len(lines)} lines; a module has at most {longest}")
    return found


def main() -> int:
    """Checks the whole tree and prints what it finds; 1 if anything."""
    found = [finding for path in tracked_files() for finding in findings(path)]
    sys.stdout.write("".join(f"{finding}\n" for finding in found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
