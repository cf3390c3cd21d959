"""OperationsService over gRPC."""

from ordergateway.v1 import operations_pb2, operations_pb2_grpc

from gateway.api import convert
from gateway.api.grpc.guard import Context
from gateway.domain.models import Policy
from gateway.orders.read import health
from gateway.store.port import Store


class OperationsServicer(operations_pb2_grpc.OperationsServiceServicer):
    """Operations for the person in charge; methods not written here answer UNIMPLEMENTED."""

    def __init__(self, store: Store, policy: Policy) -> None:
        self._store = store
        self._policy = policy

    async def GetHealth(
        self, request: operations_pb2.GetHealthRequest, context: Context
    ) -> operations_pb2.GetHealthResponse:
        """Return how the gateway and its workers are."""
        return convert.health_message(await self._store.read(health, self._policy))
