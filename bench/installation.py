"""What is measured in turn, round by round: installations that do the same by other means."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import psutil

from bench.cpu import cpu_seconds


@dataclass(frozen=True, slots=True)
class Installation:
    """What carries a load, and the processes behind it: of gateways, and of the database server if there is one."""

    load: Callable[[str, float], Mapping[str, Any]]
    gateways: tuple[psutil.Process, ...]
    server: psutil.Process | None

    def cpu(self) -> tuple[float, float]:
        """Seconds of processor time until now: of the gateways, and of the database server."""
        return sum(map(cpu_seconds, self.gateways)), 0.0 if self.server is None else cpu_seconds(self.server)


@dataclass(slots=True)
class Measured:
    """What all rounds of one kind of load said of one installation; processor time in milliseconds an order."""

    per_second: list[float] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    client_ms: list[float] = field(default_factory=list)
    gateways_ms: list[float] = field(default_factory=list)
    server_ms: list[float] = field(default_factory=list)

    def add_round(self, installation: Installation, kind: str, amount: float) -> None:
        """Runs a load once."""
        before = installation.cpu()
        told = installation.load(kind, amount)
        after = installation.cpu()
        self.milliseconds += told.get("ms", [])
        if "done" in told:
            self.per_second.append(told["per_second"])
            self.client_ms.append(told.get("cpu_ms", 0.0))
            for spent, start, end in zip((self.gateways_ms, self.server_ms), before, after, strict=True):
                spent.append((end - start) / told["done"] * 1000)


def in_turn(rounds: int, kind: str, amount: float, installations: Mapping[str, Installation]) -> dict[str, Measured]:
    """Runs one kind of load on each installation, one after the other, in so many rounds."""
    measured = {name: Measured() for name in installations}
    for _ in range(rounds):
        for name, installation in installations.items():
            measured[name].add_round(installation, kind, amount)
    return measured
