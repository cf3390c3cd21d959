"""The upstream's route for many orders at once."""

from collections.abc import Callable
from typing import Any, ClassVar

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from gateway.api.offload import checked, off_the_loop
from gateway.api.rest import convert, models
from gateway.api.rest.documented import answers, mirrors
from gateway.api.rest.envelope import problem_of, success
from gateway.api.rest.orders import submission
from gateway.api.rest.route import FacadeRoute, call_of, text_of
from gateway.api.submission import checked_each, file_orders
from gateway.domain import fields
from gateway.domain.json_text import Member, parse_elements
from gateway.domain.models import Actor, Policy, Submission
from gateway.domain.refusals import invalid
from gateway.store.port import Store


class BatchRoute(FacadeRoute):
    """A route whose body holds intents two levels deeper than a submission does."""

    levels_around: ClassVar[int] = 2


def batch_routes(store: Store, policy: Policy, new_task_id: Callable[[], str]) -> APIRouter:
    """Make the routes."""
    router = APIRouter(prefix="/api/orders", route_class=BatchRoute, tags=["orders"])

    @router.post(
        "/batch",
        summary="Submit many orders",
        responses=answers(models.BatchSubmitted, 413),
        openapi_extra=mirrors("ordergateway.v1.OrderService", "SubmitOrders"),
    )
    async def submit_orders(request: Request, body: models.SubmitBatch) -> Response:
        """File up to 500 intents. Each gets its own answer or its own refusal; one that is refused stops no other.

        When it answers, all that were accepted are on disk, by one commit. After a lost answer send the same request
        again, if each order had a task_id. What makes the body no JSON of this contract, wherever it stands, refuses it
        as a whole.
        """
        call = call_of(request)
        fields.batch_size("orders", len(body.orders))
        text = text_of(request, "orders")
        elements = await checked(len(text), lambda: parse_elements(text))

        def check(index: int) -> Submission:
            members = elements[index]
            if members is None:
                raise invalid("", "must be an object")
            return submission(_submit(members), members["intent"].text, policy, new_task_id, call.traceparent)

        sizes = [len(each["intent"].text) if each and "intent" in each else 0 for each in elements]
        done = await file_orders(store, policy, await checked_each(sizes, check), Actor(call.identity.name))
        results = [convert.batch_result_json(index, outcome) for index, outcome in enumerate(done)]
        return await off_the_loop(lambda: success({"results": results}))

    return router


def _submit(members: dict[str, Member]) -> models.Submit:
    value: dict[str, Any] = {name: member.value for name, member in members.items()}
    try:
        return models.Submit.model_validate(value)
    except ValidationError as error:
        raise invalid(*problem_of(error.errors()[0], 0)) from None
