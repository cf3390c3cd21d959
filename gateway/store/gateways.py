"""The gateways that live on the database: each tells how it is, and reads how all are."""

from datetime import timedelta
from importlib.metadata import version
from typing import Final, Protocol

from gateway.domain.health import GatewaySeen, GatewaysSeen, Problem
from gateway.domain.instant import Instant
from gateway.store import clock_anchor
from gateway.store.port import ReadTransaction, Transaction

VERSION: Final = version("order-gateway")


class Gateways(Protocol):
    """What a gateway knows of those that live on its database, itself included."""

    @property
    def name(self) -> str:
        """What this gateway is called."""
        ...

    def problems(self) -> tuple[Problem, ...]:
        """Return what does not work here and may well work at others."""
        ...

    def seen(self, tx: ReadTransaction, now: Instant, waiting: int, problems: tuple[Problem, ...]) -> GatewaysSeen:
        """Return all of them; this one as it is now, the others as they told last."""
        ...


class Fellows(Gateways, Protocol):
    """The same where several may live on the database."""

    def tell(self, tx: Transaction, now: Instant, waiting: int, problems: tuple[Problem, ...]) -> None:
        """Note that this gateway is there, with so many open streams and long polls, and what does not work here."""
        ...


class OnlyGateway:
    """The one gateway of a file, which a lock keeps for it."""

    def __init__(self, gateway_id: str, name: str, started_at: str) -> None:
        self.name = name
        self._gateway_id = gateway_id
        self._started_at = started_at

    def problems(self) -> tuple[Problem, ...]:
        """There is nobody whom it could fail to hear."""
        return ()

    def seen(self, tx: ReadTransaction, now: Instant, waiting: int, problems: tuple[Problem, ...]) -> GatewaysSeen:
        """Return this one."""
        anchor = clock_anchor.find(tx)
        written_us = now.elapsed_us if anchor is None else anchor.elapsed_us
        here = GatewaySeen(
            self._gateway_id,
            self.name,
            VERSION,
            self._started_at,
            now.utc,
            timedelta(0),
            waiting=waiting,
            leads=True,
            here=True,
            problems=problems,
        )
        return GatewaysSeen((here,), timedelta(0), timedelta(microseconds=max(0, now.elapsed_us - written_us)))
