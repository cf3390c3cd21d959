"""Every task that waits for a person, the longest waiting first."""

from typing import Final

from starlette.responses import Response

from gateway.api.codec.page_tokens import make_page_token, page_position
from gateway.console.visit import ENTRANCE, Visit
from gateway.operations.dossier import list_cases

A_PAGE: Final = 20


async def show(visit: Visit) -> Response:
    """Show a page of them."""
    call = visit.call(ENTRANCE)
    after = page_position(visit.query("page"), [], 2)
    async with visit.parts.admission.turn(call):
        found = await visit.parts.store.read(
            list_cases, visit.parts.policy, visit.actor, None if after is None else (after[0], after[1]), A_PAGE
        )
        return visit.page(
            "decisions.html",
            cases=found.items,
            next_page=make_page_token(found.next_after, []),
            is_first=after is None,
        )
