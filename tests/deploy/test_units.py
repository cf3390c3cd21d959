"""The systemd units are checked by systemd itself, where there is one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
PROGRAMS = Path(sys.executable).parent


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
@pytest.mark.parametrize("part", ["order-gateway", "order-worker"])
def test_systemd_takes_the_unit(part: str, tmp_path: Path) -> None:
    unit = tmp_path / f"{part}.service"
    text = (UNITS / unit.name).read_text()
    # Where the program lies is the only thing that differs here; systemd wants to see it.
    unit.write_text(text.replace(f"/opt/order-gateway/.venv/bin/{part}", str(PROGRAMS / part)))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    assert verified.returncode == 0, verified.stderr
    assert verified.stderr == "", "not even a warning"


@pytest.mark.parametrize("part", ["order-gateway", "order-worker"])
def test_the_commands_of_the_units_exist(part: str) -> None:
    line = next(line for line in (UNITS / f"{part}.service").read_text().splitlines() if line.startswith("ExecStart="))
    command = line.removeprefix("ExecStart=").split()
    shown = subprocess.run(
        [PROGRAMS / Path(command[0]).name, *command[1:], "--help"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr
