"""One slice of a list in the documented form, also where it had to be cut short."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from starlette.responses import Response

from gateway.api.offload import off_the_loop
from gateway.api.rest.envelope import success

T = TypeVar("T")


async def answer_page(
    document: Callable[[T], dict[str, Any]], items: Sequence[T], total: int, limit: int, offset: int
) -> Response:
    """Answer with a slice. Where it was cut short by its size, its `limit` is the number of items that it has.

    So a client of the documented contract that goes on at offset + limit, or at offset + the items it got, misses none.
    """
    end = offset + len(items)
    has_more = bool(items) and end < total
    told = {
        "total": total,
        "limit": len(items) if has_more else limit,
        "offset": offset,
        "next_offset": end if has_more else None,
    }
    return await off_the_loop(lambda: success({"items": [document(item) for item in items], **told}))


async def answer_search(
    document: Callable[[T], dict[str, Any]], items: Sequence[T], next_page_token: str, limit: int
) -> Response:
    """Answer with a page of a search. Nobody counted what there is in all: `total` is what is shown here."""
    told = {
        "total": len(items),
        "total_is_exact": False,
        "limit": limit,
        "offset": 0,
        "next_offset": None,
        "next_page_token": next_page_token or None,
    }
    return await off_the_loop(lambda: success({"items": [document(item) for item in items], **told}))
