"""The systemd units are checked by systemd itself, where there is one."""

import subprocess
import sys
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "deploy" / "systemd"
PROGRAMS = Path(sys.executable).parent


@pytest.mark.needs("systemd")
@pytest.mark.parametrize("name", sorted(unit.name for unit in UNITS.iterdir()))
def test_systemd_takes_the_unit(name: str, tmp_path: Path) -> None:
    for unit in UNITS.iterdir():
        # Where the programs lie is the only thing that differs here; systemd wants to see them.
        (tmp_path / unit.name).write_text(unit.read_text().replace("/opt/order-gateway/.venv/bin", str(PROGRAMS)))
    verified = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / name], capture_output=True, text=True, check=False
    )
    assert verified.returncode == 0, verified.stderr
    assert verified.stderr == "", "not even a warning"


@pytest.mark.parametrize("part", sorted(unit.stem for unit in UNITS.glob("*.service")))
def test_the_commands_of_the_units_exist(part: str) -> None:
    line = next(line for line in (UNITS / f"{part}.service").read_text().splitlines() if line.startswith("ExecStart="))
    command = line.removeprefix("ExecStart=").split()
    shown = subprocess.run(
        [PROGRAMS / Path(command[0]).name, *command[1:], "--help"], capture_output=True, text=True, check=False
    )
    assert shown.returncode == 0, shown.stderr


def test_one_of_several_gateways_runs_with_the_same_rights_as_a_single_one() -> None:
    single, several = [
        [line for line in (UNITS / name).read_text().splitlines() if not line.startswith("#")]
        for name in ("order-gateway.service", "order-gateway@.service")
    ]
    own = {
        "Description=order-gateway %i: lease queue and mirror of purchases",
        "EnvironmentFile=/etc/order-gateway/gateway-%i.env",
    }
    assert set(several) - set(single) == own
    assert set(single) - set(several) == {"Description=order-gateway: lease queue and mirror of purchases"}
