"""The server of a test run that is killed goes with it."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.needs("postgresql")

ROOT = Path(__file__).parents[4]
RUN = """
from tests.gateway.support import postgres

def test_that_never_ends(capfd):
    own = postgres.server()
    with capfd.disabled():
        print(own.process.pid, own.folder, flush=True)
    own.process.wait()
"""


def is_there(pid: int) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_a_test_run_that_is_killed_leaves_no_server_and_no_folder(tmp_path: Path) -> None:
    (tmp_path / "test_run.py").write_text(RUN)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        tmp_path / "test_run.py",
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        pid_text, folder_text = run.stdout.readline().split()
        run.kill()
    pid, folder = int(pid_text), Path(folder_text)
    assert folder.name.startswith("postgresql-")
    until = time.monotonic() + 60
    while is_there(pid) or folder.exists():
        assert time.monotonic() < until, (pid, folder)
        time.sleep(0.02)
