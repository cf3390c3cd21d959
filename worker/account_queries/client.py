"""The contract's QueryLeaseService over gRPC."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from grpc.aio import AioRpcError, Channel, Metadata
from ordergateway.v1 import query_leases_pb2 as pb
from ordergateway.v1.query_leases_pb2_grpc import QueryLeaseServiceStub

from common.target import ONLY_ACCOUNT
from worker.account_queries.port import Outcome
from worker.gateway.answers import check_query_lease, check_same, message_of
from worker.gateway.client import CALL_SECONDS, SILENCE_SECONDS, first_lease
from worker.gateway.port import Unreachable
from worker.gateway.refusals import to_gateway_error
from worker.gateway.wire import to_duration

if TYPE_CHECKING:  # the async stub exists for the type checker alone
    from ordergateway.v1.query_leases_pb2_grpc import QueryLeaseServiceAsyncStub


class QueryClient:
    """QueryLeases over a channel."""

    def __init__(
        self,
        channel: Channel,
        *,
        worker_id: str,
        session_id: str,
        token: str | None,
        accounts: tuple[str, ...] = (ONLY_ACCOUNT,),
    ) -> None:
        """`accounts`: which this worker reads, on each site."""
        self._accounts = accounts
        self._stub: QueryLeaseServiceAsyncStub = QueryLeaseServiceStub(channel)
        self._worker_id = worker_id
        self._session_id = session_id
        self._metadata = Metadata(("authorization", f"Bearer {token}")) if token else Metadata()

    async def lease(self, sites: Sequence[str], wait: float, *, held: Collection[str]) -> pb.QueryLease | None:
        """See QueryLeases."""
        request = pb.LeaseQueriesRequest(
            worker_id=self._worker_id,
            session_id=self._session_id,
            sites=sites,
            accounts=self._accounts,
            wait=to_duration(wait),
            held_query_ids=held,
        )
        stream = self._stub.LeaseQueries(request, metadata=self._metadata, timeout=wait + SILENCE_SECONDS)
        try:
            message = await first_lease("LeaseQueries", stream)
            return (
                None
                if message is None
                else check_query_lease("LeaseQueries", message.lease, self._accounts, sites=sites)
            )
        except AioRpcError as error:
            raise to_gateway_error(error) from error
        except TimeoutError:
            raise Unreachable(f"the query lease stream was silent for {SILENCE_SECONDS:.0f} s") from None
        finally:
            stream.cancel()

    async def report(self, query_id: str, attempt: int, outcome: Outcome) -> None:
        """See QueryLeases."""
        request = pb.ReportQueryResultRequest(query_id=query_id, worker_id=self._worker_id, attempt=attempt)
        if outcome.result_json is not None:
            request.result_json = outcome.result_json
        else:
            request.error.code = outcome.code
            request.error.message = outcome.message
        try:
            answer = await self._stub.ReportQueryResult(request, metadata=self._metadata, timeout=CALL_SECONDS)
        except AioRpcError as error:
            raise to_gateway_error(error) from error
        told = message_of("ReportQueryResult", answer)
        check_same("ReportQueryResult", "query_id", told.query_id, query_id)
