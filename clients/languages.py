"""How the client of each language is fetched, built, checked and run: its language's ordinary tools, nothing else."""

import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
Command = tuple[str, ...]
CONFORMANCE = ("order-gateway", "conformance", "worker", "--command")
"""Begins a command that puts a language's worker into the situations in which a second order could come about."""


@dataclass(frozen=True, slots=True)
class Run:
    """A program that checks, and what it is called in the output. `browser`: it needs Chromium and Playwright."""

    name: str
    command: Command
    browser: bool = False


@dataclass(frozen=True, slots=True)
class Language:
    """What belongs to one folder of `clients/`. All commands run in a copy of it, one after the other.

    `tools` are the programs that it needs; `installed_by` tells where what is missing comes from. `fetch` gets what is
    pinned, and is tried again where a download fails; `build` generates from the contract, compiles, and runs the
    language's own formatter or linter.
    """

    tools: tuple[str, ...]
    installed_by: str
    fetch: tuple[Command, ...]
    build: tuple[Command, ...]
    runs: tuple[Run, ...]


LANGUAGES = {
    "python": Language(
        tools=("protoc-gen-mypy", "protoc-gen-mypy_grpc", "mypy"),
        installed_by="make setup",
        fetch=(),
        build=(
            ("sh", "generate.sh"),
            ("mypy", "--strict", "--no-error-summary", "checks.py", "ordergateway/client"),
        ),
        runs=(
            Run("blocking", (sys.executable, "checks.py", "blocking")),
            Run("asyncio", (sys.executable, "checks.py", "asyncio")),
        ),
    ),
    "typescript": Language(
        tools=("node", "npm", "buf"),
        installed_by="Node 20 or newer brings node and npm",
        fetch=(("npm", "ci", "--prefer-offline", "--no-audit", "--no-fund", "--silent"),),
        build=(("npm", "run", "--silent", "build"),),
        runs=(
            Run("Connect, binary", ("node", "dist/main.js", "connect")),
            Run("Connect, JSON", ("node", "dist/main.js", "connect-json")),
            Run("gRPC", ("node", "dist/main.js", "grpc")),
            Run("Connect, in Chromium", (sys.executable, str(HERE / "chromium.py"), "dist/page"), browser=True),
        ),
    ),
    "go": Language(
        tools=("go", "buf"),
        installed_by="Go 1.26 or newer brings go",
        fetch=(("go", "mod", "download"),),
        build=(
            ("buf", "generate"),
            ("sh", "lint.sh"),
            ("go", "build", "-o", "bin/", "./cmd/..."),
        ),
        runs=(
            Run("grpc-go", ("bin/grpc",)),
            Run("connect-go", ("bin/connect",)),
            Run("worker", ("bin/checkworker",)),
            Run("worker, conformance", (*CONFORMANCE, "bin/worker")),
        ),
    ),
    "java": Language(
        tools=("java", "mvn"),
        installed_by="a JDK of 17 or newer, and Maven",
        fetch=(),  # Maven itself tries again
        build=(("mvn", "--quiet", "--batch-mode", "compile"),),
        runs=(
            Run("grpc-java", ("sh", "run.sh", "example.Upstream")),
            Run("worker", ("sh", "run.sh", "example.CheckWorker")),
            Run("worker, conformance", (*CONFORMANCE, "sh run.sh example.Worker")),
        ),
    ),
    "rust": Language(
        tools=("cargo",),
        installed_by="Rust 1.88 or newer brings cargo",
        fetch=(("cargo", "fetch", "--quiet"),),
        build=(
            ("sh", "-c", "! command -v rustfmt > /dev/null || cargo fmt --check"),
            ("cargo", "build", "--quiet"),
        ),
        runs=(Run("tonic", ("target/debug/order-gateway-client",)),),
    ),
    "cpp": Language(
        tools=("g++", "cmake", "ninja", "protoc", "grpc_cpp_plugin"),
        installed_by="Debian: g++ cmake ninja-build libgrpc++-dev "
        " libprotobuf-dev protobuf-compiler protobuf-compiler-grpc",
        fetch=(),
        build=(
            ("cmake", "-S", ".", "-B", "build", "-G", "Ninja"),
            ("cmake", "--build", "build"),
        ),
        runs=(Run("grpc++", ("build/upstream",)),),
    ),
}
