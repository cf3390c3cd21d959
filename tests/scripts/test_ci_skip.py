"""In CI a skipped test counts as failed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).parents[1] / "conftest.py"


@pytest.mark.extended
@pytest.mark.parametrize(("ci", "status"), [("true", 1), ("", 0)])
def test_a_skip_fails_only_in_ci(tmp_path: Path, ci: str, status: int) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.read_text())
    (tmp_path / "test_it.py").write_text("import pytest\n\ndef test_it():\n    pytest.skip('no browser')\n")
    pytest_alone = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-c",
        "/dev/null",
        "--rootdir",
        tmp_path,
        "-p",
        "no:asyncio",
        tmp_path,
    ]
    result = subprocess.run(
        pytest_alone, env=os.environ | {"CI": ci, "PYTEST_ADDOPTS": ""}, capture_output=True, text=True, check=False
    )
    assert result.returncode == status, result.stdout
    assert "no browser" in result.stdout or not ci
