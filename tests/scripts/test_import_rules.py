"""Each import rule of the house, broken once."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]

BROKEN = {
    "apart": ("gateway/main.py", "import worker.orders.state"),
    "contract": ("clients/python/ordergateway/v1/__init__.py", "import gateway.domain"),
    "common": ("common/exit_codes.py", "import worker.orders.state"),
    "programs": ("worker/orders/state.py", "import demo.orders"),
    "demo": ("demo/orders.py", "import gateway.domain.states"),
    "gateway-layers": ("gateway/domain/states.py", "import gateway.orders"),
    "gateway-queues": ("gateway/account_queries/timeouts.py", "import gateway.orders.expire"),
    "gateway-domain": ("gateway/domain/states.py", "import time"),
    "gateway-engine": ("gateway/orders/submit.py", "import gateway.store.sqlite"),
    "gateway-synchronous": ("gateway/orders/permit.py", "import asyncio"),
    "gateway-waiting": ("gateway/dispatch/notifier.py", "import grpc"),
    "gateway-commands": ("gateway/cli/commands/health.py", "import gateway.domain.states"),
    "gateway-console": ("gateway/console/__init__.py", "import gateway.orders.submit"),
    "worker-layers": ("worker/journal/records.py", "import worker.gateway.outbox"),
    "worker-site": ("worker/sites/rakuten.py", "import worker.journal"),
    "sandbox-shop": ("sandbox_shop/orders.py", "import worker.orders.state"),
    "conformance": ("conformance/rules.py", "import worker.orders.state"),
    "worker-shop": ("worker/orders/run.py", "import sandbox_shop.orders"),
    "worker-listens-on-nothing": ("worker/orders/run.py", "import starlette"),
    "worker-port": ("worker/orders/submit.py", "import worker.gateway.client"),
}


def lint(tree: Path) -> dict[str, str]:
    """KEPT or BROKEN by the id of the contract."""
    command = [LINT_IMPORTS, "--no-logo", "--no-cache"]
    result = subprocess.run(
        command,
        cwd=tree,
        env={"PYTHONPATH": f"{tree}:{tree / 'clients/python'}", "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
    )
    ids = {contract["name"]: contract["id"] for contract in CONTRACTS}
    verdicts = re.findall(r"^(.+) (KEPT|BROKEN)(?: \(\d+ ignored imports?\))?$", result.stdout, re.MULTILINE)
    assert verdicts, result.stdout + result.stderr
    return {ids[name]: verdict for name, verdict in verdicts}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree")
    shutil.copy(ROOT / "pyproject.toml", copy)
    for package in ("gateway", "worker", "sandbox_shop", "common", "conformance", "demo", "bench", "clients/python"):
        shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def test_every_contract_has_its_violation() -> None:
    assert set(BROKEN) == {contract["id"] for contract in CONTRACTS}


def test_the_tree_keeps_every_rule(tree: Path) -> None:
    assert lint(tree) == dict.fromkeys(BROKEN, "KEPT")


@contextmanager
def broken(tree: Path, *contracts: str) -> Iterator[None]:
    """The tree with the violations of these contracts."""
    before = {}
    for contract in contracts:
        name, line = BROKEN[contract]
        file = tree / name
        text = file.read_text() if file.exists() else None
        before.setdefault(file, text)
        file.write_text(f"{text or ''}\n{line}\n")
    try:
        yield
    finally:
        for file, text in before.items():
            file.unlink() if text is None else file.write_text(text)


def test_every_violation_is_found(tree: Path) -> None:
    with broken(tree, *BROKEN):
        assert lint(tree) == dict.fromkeys(BROKEN, "BROKEN")


@pytest.mark.extended
@pytest.mark.parametrize("contract", BROKEN)
def test_a_violation_is_found_by_itself(tree: Path, contract: str) -> None:
    with broken(tree, contract):
        assert lint(tree)[contract] == "BROKEN"
