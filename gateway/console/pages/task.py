"""One task: what is known, what may be decided, and how it came to that."""

from starlette.responses import Response

from gateway.api.answers import accepted
from gateway.api.offload import checked
from gateway.console.timeline import timeline
from gateway.console.visit import ORDERS, Visit
from gateway.domain import fields
from gateway.operations.dossier import dossier
from gateway.orders.read import size_of_task


async def show(visit: Visit) -> Response:
    """Show it."""
    visit.call(ORDERS + "GetOrder")
    task_id = fields.key("task_id", visit.request.path_params["task_id"])
    found = accepted(await visit.parts.store.read(dossier, visit.parts.policy, visit.actor, task_id))
    picture = timeline(found, visit.parts.policy)
    return await checked(
        size_of_task(found.case.decision.task), lambda: visit.page("task.html", found=found, picture=picture)
    )
