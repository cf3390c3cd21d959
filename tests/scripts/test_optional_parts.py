"""A test that needs an optional part is skipped without it, fails without it in CI, and can be run as without it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SUITE = """
import shutil
import pytest
from tests.optional_parts import PARTS, Part

PARTS["horse"] = Part("there is no horse", lambda: shutil.which("horse") is not None, ("horse",))
PARTS["unicorn"] = Part("there is no unicorn", lambda: False, ("unicorn",))

@pytest.mark.needs("horse")
def test_needs_horse():
    assert shutil.which("horse")

@pytest.mark.needs("horse", "unicorn")
def test_needs_unicorn():
    assert False, "it ran"

def test_uses_horse():
    assert shutil.which("horse")

def test_leaves():
    pytest.skip("it does not want to")
"""
PASSED, SKIPPED, FAILED, ERROR = "PASSED", "SKIPPED", "FAILED", "ERROR"


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of its own under this suite's conftest.py, on a machine with a horse."""
    (tmp_path / "conftest.py").write_text(SUITE + (ROOT / "tests/conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = needs(part)\n")
    (tmp_path / "test_it.py").write_text(SUITE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/horse").write_text("#!/bin/sh\n")
    (tmp_path / "bin/horse").chmod(0o700)
    return tmp_path


@pytest.mark.extended
@pytest.mark.parametrize(
    ("environment", "needs_horse", "needs_unicorn", "uses_horse", "leaves"),
    [
        pytest.param({}, PASSED, SKIPPED, PASSED, SKIPPED, id="everywhere"),
        pytest.param({"CI": "true"}, PASSED, ERROR, PASSED, FAILED, id="in-ci"),
        pytest.param({"HIDE_OPTIONAL": "1"}, SKIPPED, SKIPPED, FAILED, SKIPPED, id="hidden"),
        pytest.param({"HIDE_OPTIONAL": "1", "CI": "true"}, SKIPPED, SKIPPED, FAILED, FAILED, id="hidden-in-ci"),
    ],
)
def test_what_becomes_of_a_test(
    suite: Path, environment: dict[str, str], needs_horse: str, needs_unicorn: str, uses_horse: str, leaves: str
) -> None:
    clean = {"CI": "", "HIDE_OPTIONAL": "", "PYTEST_ADDOPTS": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-rs", "-p", "no:cacheprovider", "--rootdir", suite, suite],
        cwd=ROOT, env=os.environ | clean | {"PATH": str(suite / "bin")} | environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    outcomes = dict(re.findall(r"::test_(\w+) (PASSED|SKIPPED|FAILED|ERROR)", done.stdout))
    expected = {
        "needs_horse": needs_horse,
        "needs_unicorn": needs_unicorn,
        "uses_horse": uses_horse,
        "leaves": leaves,
    }
    assert {name: outcomes.get(name) for name in expected} == expected, done.stdout + done.stderr
    assert done.returncode == (1 if FAILED in expected.values() else 0)
    assert ("there is no unicorn" in done.stdout) is ("HIDE_OPTIONAL" not in environment)
    assert ("horse is hidden by HIDE_OPTIONAL" in done.stdout) is ("HIDE_OPTIONAL" in environment)


def test_a_part_that_nobody_knows_stops_the_run(suite: Path) -> None:
    (suite / "test_it.py").write_text("import pytest\n\n@pytest.mark.needs('dragon')\ndef test_it():\n    pass\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", suite, suite],
        cwd=ROOT, env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "needs dragon; known are" in done.stdout + done.stderr
