"""The map in docs/architecture.md shows the tree as it is, two levels deep."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
PROGRAMS = {"common", "conformance", "gateway", "sandbox_shop", "worker"}
MIRRORS = PROGRAMS | {"bench", "clients", "demo", "deploy", "scripts"}
"""Folders of tests that are named as what they test."""


def drawn() -> set[str]:
    """The paths in the map: folders at its left edge, and what is set in below gateway, worker, common and tests."""
    (drawing,) = (block for block in PAGE.split("```\n") if block.startswith("proto/"))
    paths, folder = set(), ""
    for indent, name in re.findall(r"^( *)([\w./]+) ", drawing, re.MULTILINE):
        folder = folder if indent else name
        paths.add(f"{folder}{name}" if indent else name)
    return {path.rstrip("/") for path in paths}


@pytest.mark.needs("git")
def test_the_map_shows_each_folder_and_each_part_of_the_programs() -> None:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    files = [Path(line).parts for line in listing.stdout.splitlines()]
    folders = {parts[0] for parts in files if len(parts) > 1 and parts[0][0] != "."}
    below = {"/".join(parts[:2]) for parts in files if parts[0] in {"gateway", "worker"} and "__" not in parts[1]}
    tests = {parts[1] for parts in files if parts[0] == "tests" and len(parts) > 2} - MIRRORS
    assert drawn() == folders | below | {f"tests/{name}" for name in tests}
