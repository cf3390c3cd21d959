"""Tells the log once when a part stops to work, and once when it works again."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from gateway.domain.health import Health, ProblemKind

_TOLD_BY_ALERTS: Final = frozenset(
    {
        ProblemKind.WORKER_OFFLINE,
        ProblemKind.TASK_UNCLAIMED,
        ProblemKind.DECISION_WAITING,
        ProblemKind.ALERT_STANDING,
    }
)
"""Each of these has alerts of its own in the log."""

_log = logging.getLogger(__name__)


class HealthSweep:
    """Looks at the gateway's health as anybody else does."""

    name = "health"

    def __init__(self, look: Callable[[], Awaitable[Health]], interval: float) -> None:
        """`look` raises StoreUnavailableError."""
        self._look = look
        self._told: frozenset[ProblemKind] = frozenset()
        self.interval = interval

    async def run_once(self) -> Mapping[str, int]:
        """Log what has changed since the last look."""
        problems = {problem.kind: problem.message for problem in (await self._look()).problems}
        now = frozenset(problems) - _TOLD_BY_ALERTS
        for kind in sorted(now - self._told):
            _log.error("problem=%s %s", kind.value, problems[kind])
        for kind in sorted(self._told - now):
            _log.warning("problem=%s is over", kind.value)
        self._told = now
        return {}
