"""The gateways of one database: a row each, which it writes anew every few seconds and takes away when it stops.

A row without a sign tells of a gateway that died. It stays for a day, or until another one of its name lives.
"""

import json
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from gateway.domain.health import GatewaySeen, GatewaysSeen, Problem, ProblemKind
from gateway.domain.instant import MICROSECONDS, Instant, parse_utc, utc_text
from gateway.store.gateways import VERSION
from gateway.store.port import ReadTransaction, Row, Transaction
from gateway.store.postgres.schema import LIVING_SECONDS, program

GONE_SECONDS: Final = 30
"""Silence after which a gateway that has not signed off counts as gone; it tells of itself every five seconds."""

FORGOTTEN_SECONDS: Final = 86_400

MAX_SHOWN: Final = 50

_UNHEARD_SECONDS: Final = 10.0
_KINDS: Final = {kind.value: kind for kind in ProblemKind}


class SharedGateways:
    """The gateways of a database, as one of them knows them.

    `unheard_for` tells for how many seconds it has not heard what others notify; `settings`, in what all must agree.
    """

    def __init__(
        self, gateway_id: str, name: str, settings: Mapping[str, object], unheard_for: Callable[[], float]
    ) -> None:
        self.name = name
        self._gateway_id = gateway_id
        self._settings = settings
        self._unheard_for = unheard_for
        self._joined = Instant("", 0)

    def join(self, tx: Transaction, now: Instant) -> str | None:
        """Note that this gateway starts; return in what it differs from one that lives, if it does."""
        since_us = now.elapsed_us - LIVING_SECONDS * MICROSECONDS
        for other in tx.all("gateways_living", gateway_id=self._gateway_id, since_us=since_us):
            theirs, ours = json.loads(other["settings_json"]), self._settings
            if differing := sorted(name for name in ours if theirs.get(name, ours[name]) != ours[name]):
                name = differing[0]
                return f"{name} is {ours[name]} here and {theirs[name]} at another gateway that runs on this database"
        self._joined = now
        self.tell(tx, now, 0, ())
        return None

    def problems(self) -> tuple[Problem, ...]:
        """Return whether this gateway has not heard the others for a while."""
        if self._unheard_for() < _UNHEARD_SECONDS:
            return ()
        words = "what other gateways change is not heard, only polled once a second; the log says why"
        return (Problem(ProblemKind.NOTIFICATIONS_LOST, words),)

    def tell(self, tx: Transaction, now: Instant, waiting: int, problems: tuple[Problem, ...]) -> None:
        """Write this gateway's row, and drop those that nobody needs any more."""
        tx.change_one(
            "gateway_tells",
            gateway_id=self._gateway_id,
            name=self.name,
            version=VERSION,
            started_at=self._joined.utc,
            settings_json=json.dumps(self._settings, sort_keys=True),
            last_seen_at=now.utc,
            last_seen_us=now.elapsed_us,
            waiting=waiting,
            problems_json=json.dumps([(problem.kind.value, problem.message) for problem in problems]),
            program=program(),
        )
        tx.change_any(
            "gateways_prune",
            gateway_id=self._gateway_id,
            name=self.name,
            gone_us=now.elapsed_us - GONE_SECONDS * MICROSECONDS,
            forgotten_us=now.elapsed_us - FORGOTTEN_SECONDS * MICROSECONDS,
            forgotten_at=utc_text(parse_utc(now.utc) - timedelta(seconds=FORGOTTEN_SECONDS)),
        )

    def seen(self, tx: ReadTransaction, now: Instant, waiting: int, problems: tuple[Problem, ...]) -> GatewaysSeen:
        """Return this gateway as it is now, and the others as they told last."""
        leader, newest = tx.one("leader_get"), tx.one("group_newest")
        term_ends_us = 0 if leader is None else leader["term_ends_us"]
        leading = leader["gateway_id"] if leader is not None and term_ends_us > now.elapsed_us else None
        here = GatewaySeen(
            self._gateway_id,
            self.name,
            VERSION,
            self._joined.utc,
            now.utc,
            timedelta(0),
            waiting=waiting,
            leads=leading == self._gateway_id,
            here=True,
            problems=problems,
        )
        rows = tx.all("gateways_others", gateway_id=self._gateway_id, count=MAX_SHOWN - 1)
        others = [_other(row, now, leading) for row in rows]
        # One that has just started cannot have missed a leader before that.
        leaderless_us = 0 if leading else now.elapsed_us - max(term_ends_us, self._joined.elapsed_us)
        written_us = now.elapsed_us if newest is None else newest["elapsed_us"]
        return GatewaysSeen(
            tuple(sorted((here, *others), key=lambda one: (one.name, one.gateway_id))),
            timedelta(microseconds=max(0, leaderless_us)),
            timedelta(microseconds=max(0, now.elapsed_us - written_us)),
        )


class Hearing:
    """Since when nothing is heard of other gateways. `unheard_for` is asked by whoever tells of problems."""

    def __init__(self) -> None:
        self._lost_at: float | None = time.monotonic()

    def begins(self) -> None:
        """Note that notifications are heard from now on."""
        self._lost_at = None

    def ends(self) -> None:
        """Note that they are not, from now on."""
        if self._lost_at is None:
            self._lost_at = time.monotonic()

    def unheard_for(self) -> float:
        """Return for how many seconds they have not been."""
        return 0.0 if self._lost_at is None else time.monotonic() - self._lost_at


def _other(row: Row, now: Instant, leading: str | None) -> GatewaySeen:
    seen_us = row["last_seen_us"]
    silent_us = None if seen_us is None else max(0, now.elapsed_us - seen_us)
    return GatewaySeen(
        row["gateway_id"],
        row["name"],
        row["version"],
        row["started_at"],
        row["last_seen_at"],
        None if silent_us is None else timedelta(microseconds=silent_us),
        waiting=row["waiting"],
        leads=row["gateway_id"] == leading,
        gone=silent_us is not None and silent_us > GONE_SECONDS * MICROSECONDS,
        problems=tuple(
            # One of a newer version may name kinds that this one does not know.
            Problem(_KINDS[kind], message)
            for kind, message in json.loads(row["problems_json"])
            if kind in _KINDS
        ),
    )
