"""Parameters that several routes share."""

from typing import Annotated, Final

from fastapi import Path, Query
from pydantic import AfterValidator

from gateway.domain import fields

DEFAULT_WAIT: Final = 30

_LARGEST_OFFSET: Final = 2**63 - 1
"""No table is longer; a larger offset gives the same empty slice."""

TaskIdInPath = Annotated[str, Path(description="The task's key.", examples=["po-20260727-0001"])]
QueryIdInPath = Annotated[str, Path(description="The query's key.", examples=["aq-20260816-0001"])]
WorkerId = Annotated[str, Query(description="The worker's name.", examples=["local-01"])]
MaybeWorkerId = Annotated[
    str | None, Query(description="The worker's name, where the body has none.", examples=["local-01"])
]
Limit = Annotated[int, Query(ge=1, le=fields.MAX_PAGE_SIZE, description=f"Rows a slice, 1 to {fields.MAX_PAGE_SIZE}.")]
Offset = Annotated[
    int,
    Query(ge=0, description="How many of the newest to leave out."),
    AfterValidator(lambda value: min(value, _LARGEST_OFFSET)),
]
Wait = Annotated[
    float,
    Query(ge=0, allow_inf_nan=False, description="Seconds to wait; longer than the gateway's maximum is clamped."),
]
