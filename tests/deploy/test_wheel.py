"""The wheel holds what an installation without the source tree needs: the contract, too."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("gateway", "worker", "sandbox_shop", "common", "generated/ordergateway", "proto/ordergateway")


def test_the_wheel_holds_every_file_of_the_packages_and_the_contract(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    files = [file for package in PACKAGES for file in (ROOT / package).rglob("*") if file.is_file()]
    expected = {file.relative_to(ROOT).as_posix() for file in files if file.suffix != ".pyc"}
    named = {name.removeprefix("generated/").removeprefix("proto/") for name in expected}
    assert held == named
    assert {"ordergateway/v1/orders.proto", "ordergateway/v1/orders_pb2.py"} <= held
