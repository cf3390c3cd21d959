"""What the query loop asks of the gateway: the contract's QueryLeaseService, apart from how it travels."""

from collections.abc import Collection, Sequence
from typing import Protocol

from ordergateway.v1 import query_leases_pb2 as pb


class QueryLeases(Protocol):
    """QueryLeaseService for one worker and session. All of it raises Unreachable and Refused."""

    async def lease(self, sites: Sequence[str], wait: float, *, held: Collection[str]) -> pb.QueryLease | None:
        """Wait up to that many seconds for a query; None if there was none. `held`: what is in hand already."""
        ...

    async def report(self, query_id: str, attempt: int, outcome: "Outcome") -> None:
        """Bring the outcome of one attempt. The same one again is safe."""
        ...


class Outcome:
    """What came of one attempt: the result as JSON text, or else a code and words for people."""

    def __init__(self, result_json: str | None = None, *, code: int = 0, message: str = "") -> None:
        self.result_json = result_json
        self.code = code
        self.message = message

    @property
    def succeeded(self) -> bool:
        """True if there is a result."""
        return self.result_json is not None
