"""The processes of a benchmark: a floor or a gateway that serves, and a client that is measured."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from bench.load import TOKEN
from demo.programs import Program, entry_point, free_port, serves_grpc, started

REPOSITORY: Final = Path(__file__).parents[1]
START_SECONDS: Final = 180
CLIENT_SECONDS: Final = 300
NONE: Final[Mapping[str, str]] = MappingProxyType({})


@contextmanager
def floor(folder: Path) -> Iterator[tuple[str, Program]]:
    """A running floor; gives its address."""
    port = free_port()
    target = f"127.0.0.1:{port}"
    command = [sys.executable, "-m", "bench.floor", str(port)]
    folder.mkdir(parents=True, exist_ok=True)
    with started("floor", command, {"PYTHONPATH": str(REPOSITORY)}, folder=folder) as program:
        program.wait_until(lambda: serves_grpc(target))
        yield target, program


@contextmanager
def gateway(folder: Path, settings: Mapping[str, str] = NONE) -> Iterator[tuple[str, Program]]:
    """A running gateway; gives its address. Its database is `gateway.db` there, unless the settings say else."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    target = f"127.0.0.1:{port}"
    own = {
        "RAKUTEN_GATEWAY_PORT": str(free_port()),
        "RAKUTEN_GATEWAY_GRPC_PORT": str(port),
        "RAKUTEN_GATEWAY_DB_PATH": "gateway.db",
        "RAKUTEN_SITES": "sandbox",
        "RAKUTEN_API_TOKEN": TOKEN,
    }
    with started("gateway", [entry_point("order-gateway"), "serve"], own | dict(settings), folder=folder) as program:
        program.wait_until(lambda: serves_grpc(target), seconds=START_SECONDS)
        yield target, program


def measured(module: str, kind: str, *arguments: str | float, seconds: float = CLIENT_SECONDS) -> Any:
    """Runs one client process, a module of this package with its arguments, and returns what it printed.

    Raises RuntimeError with its words if it fails, or if it takes longer than so many seconds.
    """
    command = [sys.executable, "-m", f"bench.{module}", kind, *map(str, arguments)]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"the load '{kind}' of {module} took longer than {seconds:.0f} s") from error
    if done.returncode != 0:
        raise RuntimeError(f"the load '{kind}' of {module} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout)
