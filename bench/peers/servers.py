"""The peers that bring a server of their own, each with a folder of its own, on a free port of the loopback address."""

import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from demo.programs import Program, free_port, started


@dataclass(frozen=True, slots=True)
class ServerOf:
    """How a peer's server is started. `flushed`: whether it can be told to flush each write before it answers."""

    program: str
    scheme: str
    arguments: Callable[[Path, int], list[str]]
    version: tuple[str, ...]
    flushed: bool


SERVERS: Final = {
    "beanstalkd": ServerOf(
        "beanstalkd", "beanstalk", lambda folder, port: ["-l", "127.0.0.1", "-p", str(port), "-b", str(folder), "-f0"],
        ("-v",), flushed=True,
    ),
    "redis": ServerOf(
        "redis-server", "redis",
        lambda folder, port: [
            "--bind", "127.0.0.1", "--port", str(port), "--dir", str(folder), "--save", "", "--appendonly", "yes",
            "--appendfsync", "always",
        ],
        ("--version",), flushed=True,
    ),
    "nats": ServerOf(
        "nats-server", "nats",
        lambda folder, port: ["-a", "127.0.0.1", "-p", str(port), "-js", "-sd", str(folder)],
        ("--version",), flushed=False,
    ),
}  # fmt: skip


def version_of(name: str) -> str | None:
    """The version of a peer's server; None where it is not on this machine."""
    of = SERVERS[name]
    program = shutil.which(of.program)
    if program is None:
        return None
    told = subprocess.run([program, *of.version], capture_output=True, text=True, check=False, timeout=10).stdout
    found = re.search(r"\d+(\.\d+)+", told)
    return "of unknown version" if found is None else found[0]


@contextmanager
def served(name: str, folder: Path) -> Iterator[tuple[str, Program]]:
    """The running server; gives its address."""
    of, port = SERVERS[name], free_port()
    data = folder / "data"
    data.mkdir(parents=True)
    with started(name, [of.program, *of.arguments(data, port)], {}, folder=folder) as program:
        program.wait_until(lambda: _listens(port))
        yield f"{of.scheme}://127.0.0.1:{port}", program


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
