"""OperationsService: operations for the person in charge; operations.proto says what each method does."""

from ordergateway.v1 import operations_pb2

from gateway.api import convert
from gateway.api.call import Call
from gateway.domain.models import Policy
from gateway.orders.read import health
from gateway.store.port import Store


class OperationsService:
    """The methods of the service, free of any transport; those not written here answer UNIMPLEMENTED."""

    def __init__(self, store: Store, policy: Policy) -> None:
        self._store = store
        self._policy = policy

    async def get_health(
        self, request: operations_pb2.GetHealthRequest, call: Call
    ) -> operations_pb2.GetHealthResponse:
        """Return how the gateway and its workers are."""
        return convert.health_message(await self._store.read(health, self._policy))
