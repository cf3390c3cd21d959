"""The wheels hold what an installation without the source tree needs: the contract, too."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "clients/python"
PROGRAMS = ("gateway", "worker", "sandbox_shop", "common", "conformance")


def held_by(wheel_of: Path, folder: Path) -> set[str]:
    """What the wheel of a project holds, besides its metadata."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=wheel_of,
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def files(root: Path, *packages: str) -> set[str]:
    found = [file for package in packages for file in (root / package).rglob("*") if file.is_file()]
    return {file.relative_to(root).as_posix() for file in found if file.suffix != ".pyc"}


def test_the_wheel_holds_every_file_of_the_programs(tmp_path: Path) -> None:
    assert held_by(ROOT, tmp_path) == files(ROOT, *PROGRAMS)


def test_the_client_s_wheel_holds_the_contract_and_what_was_generated_from_it(tmp_path: Path) -> None:
    held = held_by(CLIENT, tmp_path)
    assert held == files(CLIENT, "ordergateway") | files(ROOT / "proto", "ordergateway")
    assert {"ordergateway/v1/orders.proto", "ordergateway/v1/orders_pb2.py", "ordergateway/py.typed"} <= held


@pytest.mark.parametrize("unwanted", ["fastapi", "connectrpc", "googleapis-common-protos", "standardwebhooks"])
def test_who_wants_the_contract_gets_little_else(unwanted: str) -> None:
    dependencies = tomllib.loads((CLIENT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert [each.partition(">=")[0] for each in dependencies] == ["grpcio", "protobuf"]
    program = f"""
import importlib, pkgutil, sys
sys.modules[{unwanted!r}] = None
import ordergateway.v1
names = [module.name for module in pkgutil.walk_packages(ordergateway.__path__, "ordergateway.")]
for name in names:
    if not name.endswith("_connect"):
        importlib.import_module(name)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_both_distributions_have_one_version() -> None:
    projects = [tomllib.loads((folder / "pyproject.toml").read_text())["project"] for folder in (ROOT, CLIENT)]
    assert projects[0]["version"] == projects[1]["version"]
    assert f"ordergateway-client=={projects[1]['version']}" in projects[0]["dependencies"]
