"""When a call is made again, and after how long: the rule of errors.proto, for both kinds of clients."""

from collections.abc import Callable
from math import inf
from typing import Final

import grpc

from ordergateway.client.details import Failure, error_detail
from ordergateway.client.errors import DeadlineExceededError, GatewayError, RefusedError, UnansweredError, refused
from ordergateway.v1 import errors_pb2 as pb

ATTEMPT_SECONDS: Final = 10.0
"""How long one attempt may take before it counts as lost."""

FIRST_PAUSE_SECONDS: Final = 0.2
LONGEST_PAUSE_SECONDS: Final = 5.0
"""A pause is drawn between 0 and a bound that doubles from the first to the longest."""

FEW: Final = 3
"""How often a call is made that something else than the gateway is likely to refuse again."""

_PASSING: Final = {pb.ERROR_REASON_STORE_UNAVAILABLE, pb.ERROR_REASON_SHUTTING_DOWN}
_RARELY_PASSING: Final = {grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.RESOURCE_EXHAUSTED}


class Attempts:
    """The attempts at one call. Every call here is idempotent by its task_id or only reads, so each may be repeated."""

    def __init__(
        self, now: Callable[[], float], random: Callable[[], float], seconds: float | None, *, repeat: bool = True
    ) -> None:
        """`now`: monotonic, seconds. `random`: from 0 to 1. `seconds`: for all attempts together; None: for ever.

        `repeat` False: only after the gateway has answered once.
        """
        self._now = now
        self._random = random
        self._repeat = repeat
        self._due = None if seconds is None else now() + seconds
        self._failed = self._doubtful = 0

    @property
    def left(self) -> float | None:
        """Seconds until the deadline, at least 0; None where there is none."""
        return None if self._due is None else max(0.0, self._due - self._now())

    @property
    def timeout(self) -> float:
        """How long the next attempt may take, in seconds."""
        longest = ATTEMPT_SECONDS if self._repeat else inf
        return longest if self.left is None else min(longest, self.left)

    def answered(self) -> None:
        """Begin the backoff anew: the gateway is there."""
        self._failed = self._doubtful = 0
        self._repeat = True

    def pause_after(self, failure: Failure) -> float:
        """Return how many seconds to wait before the next attempt. Raises GatewayError where there is to be none."""
        error = error_of(failure)
        if not self._repeat:
            raise error
        if not isinstance(error, RefusedError):
            return self._pause_unanswered(error)
        detail = error.detail
        if detail.reason == pb.ERROR_REASON_INTERNAL:
            self._doubtful += 1
        repeated = (
            detail.reason in _PASSING
            or (detail.reason == pb.ERROR_REASON_TOO_MANY and error.retry_after is not None)
            or (detail.reason == pb.ERROR_REASON_INTERNAL and self._doubtful < FEW)
        )
        if not repeated:
            raise error
        least = 0.0 if error.retry_after is None else error.retry_after.total_seconds()
        pause = least + self._backoff()
        if self.left is None:
            return pause
        if least >= self.left:
            raise error
        return min(pause, self.left)

    def pause_after_an_end(self) -> float:
        """As pause_after, for a stream that ended without an error before its task had."""
        return self._within(self._backoff(), UnansweredError("the watch has ended early", grpc.StatusCode.OK))

    def _pause_unanswered(self, error: GatewayError) -> float:
        if error.code in _RARELY_PASSING:
            self._doubtful += 1
            if self._doubtful >= FEW:
                raise error
        return self._within(self._backoff(), error)

    def _within(self, pause: float, error: GatewayError) -> float:
        if self.left is None:
            return pause
        if self.left <= 0:
            raise DeadlineExceededError(f"the time given has passed; the last word: {error}", error.code) from error
        return min(pause, self.left)

    def _backoff(self) -> float:
        bound = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2.0 ** min(self._failed, 10))
        self._failed += 1
        return self._random() * bound


def error_of(failure: Failure) -> GatewayError:
    """Return a failed call as an exception: what the gateway refused, or that it has not answered."""
    if (detail := error_detail(failure)) is not None:
        return refused(detail, failure.code())
    code, words = failure.code(), failure.details() or ""
    return UnansweredError(f"no answer of the gateway: {code.name}: {words}", code, words)
