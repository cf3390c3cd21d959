"""A contract in which one field has another name: no client builds with it, so CI finds such a change out."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [pytest.mark.extended, pytest.mark.timeout(900)]


@pytest.mark.parametrize(
    "language",
    [
        "python",
        pytest.param("typescript", marks=pytest.mark.needs("node")),
        pytest.param("go", marks=pytest.mark.needs("go")),
        pytest.param("java", marks=pytest.mark.needs("maven")),
        pytest.param("rust", marks=pytest.mark.needs("cargo")),
        pytest.param("cpp", marks=pytest.mark.needs("grpc++")),
    ],
)
def test_no_client_builds_with_it(language: str, tmp_path: Path) -> None:
    contract = tmp_path / "proto"
    shutil.copytree(ROOT / "proto", contract)
    orders = contract / "ordergateway/v1/orders.proto"
    orders.write_text(orders.read_text().replace(" intent_json = ", " intent_text = "))
    done = subprocess.run(
        [sys.executable, "-m", "clients", language, "--build-only", "--contract", str(contract)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert f"{language}: failed: " in done.stdout
    assert "intentjson" in done.stdout.lower().replace("_", "")
