"""Starts the project's programs as processes of their own, waits until they serve, and stops them by their process id.

Used by the demo and by the benchmarks.
"""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NoReturn

import grpc
from grpc_health.v1 import health_pb2

OWN_PORTS = range(20_000, 30_000)
STOP_SECONDS = 15
START_SECONDS = 30


class ProgramError(Exception):
    """A program ended by itself or did not come up in time; the message holds the end of its log."""


@dataclass(frozen=True, slots=True)
class Program:
    """A running program and the file that takes what it writes."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def check(self) -> None:
        """Raises ProgramError if the program has ended."""
        status = self.process.poll()
        if status is not None:
            raise ProgramError(f"{self.name} ended with status {status}; the end of {self.log}:\n{self.tail()}")

    def tail(self, lines: int = 15) -> str:
        """The last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait_until(self, ready: Callable[[], bool], seconds: float = START_SECONDS) -> None:
        """Waits until `ready` says so. Raises ProgramError if the program ends before, or after so many seconds."""
        deadline = time.monotonic() + seconds
        while not ready():
            self.check()
            if time.monotonic() > deadline:
                raise ProgramError(f"{self.name} did not serve within {seconds:.0f} s; see {self.log}:\n{self.tail()}")
            time.sleep(0.02)

    def stop(self) -> None:
        """Asks the program to end (SIGTERM); ends it if it does not in time, or if the caller is interrupted again."""
        try:
            self.process.terminate()
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            pass
        finally:
            if self.process.poll() is None:
                self.process.kill()
                self.process.wait()


@contextmanager
def started(
    name: str, command: list[str], settings: Mapping[str, str], *, folder: Path, log: Path | None = None
) -> Iterator[Program]:
    """Runs a command in `folder` with these settings and no others (neither RAKUTEN_ variables nor a .env file of the
    caller), and stops it at the end. The log lies in the folder unless named.
    """
    environment = {key: value for key, value in os.environ.items() if not key.upper().startswith("RAKUTEN_")}
    environment |= settings
    log = log or folder / f"{name}.log"
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches the caller alone, which then stops its programs in order
        )
    program = Program(name, process, log)
    try:
        yield program
    finally:
        program.stop()


def entry_point(name: str) -> str:
    """Path of a command that the project installs beside the running interpreter."""
    return str(Path(sys.executable).with_name(name))


def free_port() -> int:
    """A loopback port that nobody listens on now, below those that a system gives to whoever binds port 0.

    Among those, another program could be given this one before it is bound. Raises OSError if none is free.
    """
    for port in secrets.SystemRandom().sample(OWN_PORTS, min(20, len(OWN_PORTS))):
        with socket.socket() as listener, suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port
    raise OSError(f"no port of {OWN_PORTS.start} to {OWN_PORTS.stop - 1} is free")


def serves_grpc(target: str) -> bool:
    """True if the gRPC health service there says that it serves."""
    with grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        try:
            answer = check(health_pb2.HealthCheckRequest(), timeout=1)
        except grpc.RpcError:
            return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


def end_on_signals() -> None:
    """Lets SIGTERM and SIGHUP end the caller as Ctrl-C does, so that everything it started is stopped.

    SIGINT too, since a shell that starts a job in the background makes it ignore that one.
    """

    def interrupt(number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
