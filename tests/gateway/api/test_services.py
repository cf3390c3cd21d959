"""Every method of the contract is implemented: mypy says so, and what got past it does not start."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from ordergateway.v1 import operations_pb2

from gateway.api.call import methods_of
from gateway.api.services.callbacks import CallbackOperations

ROOT = Path(__file__).parents[3]
SERVICES = Path("gateway/api/services")
OPERATIONS = operations_pb2.DESCRIPTOR.services_by_name["OperationsService"]


def checked(folder: Path, module: str, text: str) -> subprocess.CompletedProcess[str]:
    """What mypy says of the composition when a module of the services reads like this."""
    changed = folder / module
    changed.write_text(text)
    mypy = [sys.executable, "-m", "mypy", "--cache-dir", folder, "--shadow-file", SERVICES / module, changed]
    return subprocess.run([*mypy, "gateway/composition.py"], cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.extended
@pytest.mark.parametrize(
    ("module", "method", "service"),
    [("orders.py", "get_order", "OrderService"), ("callbacks.py", "replay_callback", "OperationsService")],
)
def test_mypy_refuses_a_service_that_lacks_a_method(tmp_path: Path, module: str, method: str, service: str) -> None:
    text = (ROOT / SERVICES / module).read_text()
    said = checked(tmp_path, module, text.replace(f"async def {method}(", f"async def not_{method}("))
    assert said.returncode == 1, said
    assert re.search(rf'gateway/composition.py:\d+: error: Argument "\w+" to "Services" .*\.{service}', said.stdout)
    assert re.search(rf"note: +{method}\n", said.stdout)


def test_a_service_that_lacks_a_method_is_not_served() -> None:
    with pytest.raises(TypeError, match=r"CallbackOperations has no get_health, which .*OperationsService promises"):
        list(methods_of(CallbackOperations(None), OPERATIONS))  # type: ignore[arg-type]
