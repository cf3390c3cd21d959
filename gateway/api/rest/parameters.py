"""Parameters that several routes share."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import Path, Query
from pydantic import AfterValidator, BeforeValidator

from gateway.domain import fields
from gateway.store.port import ABOVE_ALL_ROWS

DEFAULT_WAIT: Final = 30


def _plain(form: str, otherwise: str) -> Callable[[Any], Any]:
    """Return what lets a number through as JSON writes it: Python's own forms (`1_0`, `+5`, other digits) are none."""
    number = re.compile(form, re.ASCII)

    def check(value: Any) -> Any:
        if isinstance(value, str) and not number.fullmatch(value):
            raise ValueError(otherwise)
        return value

    return check


TaskIdInPath = Annotated[str, Path(description="The task's key.", examples=["po-20260727-0001"])]
QueryIdInPath = Annotated[str, Path(description="The query's key.", examples=["aq-20260816-0001"])]
WorkerId = Annotated[str, Query(description="The worker's name.", examples=["local-01"])]
MaybeWorkerId = Annotated[
    str | None, Query(description="The worker's name, where the body has none.", examples=["local-01"])
]
AccountServed = Annotated[
    str, Query(description="The account that the worker serves; absent or empty: the site's only account.")
]
AccountFilter = Annotated[
    str | None,
    Query(description="Only of this account on a site; absent: of all.", examples=["buyer-1"]),
    AfterValidator(lambda value: value if value is None else fields.named_account("account", value)),
]
Limit = Annotated[
    int,
    Query(ge=1, le=fields.MAX_PAGE_SIZE, description=f"Rows a slice, 1 to {fields.MAX_PAGE_SIZE}."),
    BeforeValidator(_plain(r"-?(?:0|[1-9][0-9]*)", "must be a whole number")),
]
Offset = Annotated[
    int,
    Query(ge=0, description="How many of the newest to leave out."),
    BeforeValidator(_plain(r"-?(?:0|[1-9][0-9]*)", "must be a whole number")),
    # No table is longer; a larger offset gives the same empty slice.
    AfterValidator(lambda value: min(value, ABOVE_ALL_ROWS)),
]
Wait = Annotated[
    float,
    Query(ge=0, allow_inf_nan=False, description="Seconds to wait; longer than the gateway's maximum is clamped."),
    BeforeValidator(_plain(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?", "must be a number")),
]
