"""`make demo` as a user sees it."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

COMMAND = [sys.executable, "-m", "demo"]
ROOT = Path(__file__).parents[2]


def started_by(demo: psutil.Process) -> list[psutil.Process]:
    return demo.children(recursive=True)


@pytest.mark.extended
def test_the_demo_places_its_orders_and_says_so_in_its_status() -> None:
    done = subprocess.run(COMMAND, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    folder = re.search(r"stay in (\S+)", done.stdout)
    assert folder, done.stdout + done.stderr
    shutil.rmtree(folder[1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"ended as +(\w+)", done.stdout) == ["succeeded", "needs_human", "needs_human"]
    assert re.findall(r"counted so far: (\d), paid: (\d)", done.stdout) == [("1", "1"), ("1", "1"), ("2", "1")]
    assert "code 5004" in done.stdout
    assert [line for line in done.stdout.splitlines() if line != line.rstrip()] == [], "a pipe is no table"


def test_help_starts_nothing() -> None:
    done = subprocess.run([*COMMAND, "--help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "Places three orders" in done.stdout, done.stderr) == (0, True, "")


@pytest.mark.extended
def test_a_full_disk_behind_the_output_is_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            COMMAND, cwd=ROOT, env=os.environ | {"TMPDIR": str(tmp_path)}, stdout=full, stderr=subprocess.PIPE,
            text=True, timeout=100, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "demo: standard output cannot be written (No space left on device)\n")


@pytest.mark.extended
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_demo_leaves_no_process(tmp_path: Path, number: signal.Signals) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(COMMAND, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "listens nowhere" in line:
                break
        children = started_by(psutil.Process(demo.pid))
        assert len(children) >= 3
        demo.send_signal(number)
        try:
            rest = demo.stdout.read()
        except BaseException:  # the limit of a test's time; a demo that hangs must not outlive it
            for process in (demo, *children):
                process.kill()
            raise
    assert demo.returncode == 130, rest
    deadline = time.monotonic() + 10  # a browser's helpers end a moment after it
    while [child for child in children if child.is_running()] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [child for child in children if child.is_running()] == []


@pytest.mark.extended
def test_a_part_that_cannot_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    """Where a program ends at once the demo fails, names it, and shows its last words."""
    for name in ("order-gateway", "order-worker"):
        (tmp_path / name).write_text("#!/bin/sh\necho no such setting\nexit 2\n")
        (tmp_path / name).chmod(0o700)
    # The programs are looked for beside the interpreter.
    (tmp_path / "python").symlink_to(sys.executable)
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [tmp_path / "python", "-m", "demo"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "gateway ended with status 2" in done.stdout
    assert "no such setting" in done.stdout
