"""A result within the limits: raw data goes first, and what is still too large is no result."""

import json
from typing import Any

import pytest

from worker.account_queries.size import MAX_DEPTH, ResultTooLargeError, to_text

MIB = 1024 * 1024


def list_of(size: int) -> dict[str, Any]:
    """A list whose text has so many bytes, half of them in two-byte characters of its raw data."""
    base: dict[str, Any] = {"kind": "order_list", "orders": [], "raw_pages": ["é" * 1000]}
    base["raw_pages"].append("x" * (size - len(to_text(base, max_bytes=MIB).encode()) - 3))
    return base


@pytest.mark.parametrize(("size", "omitted"), [(MIB - 1, False), (MIB, False), (MIB + 1, True)])
def test_raw_data_goes_at_one_byte_over_the_limit(size: int, omitted: bool) -> None:
    result = list_of(size)
    text = to_text(result, max_bytes=MIB)
    if omitted:
        assert json.loads(text) == {"kind": "order_list", "orders": [], "raw_omitted": True}
    else:
        assert len(text.encode()) == size
        assert json.loads(text) == result


@pytest.mark.parametrize(("over", "fits"), [(0, True), (1, False)])
def test_what_is_too_large_without_raw_data_is_no_result(over: int, fits: bool) -> None:
    result = {"kind": "order_list", "orders": [], "raw_pages": ["x" * 5000]}
    limit = 2000
    result["orders"] = ["y" * (limit - len('{"kind":"order_list","orders":[""],"raw_omitted":true}') + over)]
    if fits:
        assert len(to_text(result, max_bytes=limit).encode()) == limit
    else:
        with pytest.raises(ResultTooLargeError, match="2,001 bytes"):
            to_text(result, max_bytes=limit)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "raw",
    ["\ud800", "a\0b", float("nan"), float("inf"), nested(MAX_DEPTH), nested(5000), 10**5000],
    ids=["surrogate", "nul", "nan", "infinity", "deep", "deeper", "long"],
)
def test_raw_data_that_the_contract_s_json_does_not_take_goes_too(raw: Any) -> None:
    text = to_text({"kind": "order_detail", "found": True, "raw": raw, "raw_available": True}, max_bytes=MIB)
    assert json.loads(text) == {"kind": "order_detail", "found": True, "raw_available": True, "raw_omitted": True}


def test_the_deepest_raw_data_that_fits_stays() -> None:
    result = {"raw": nested(MAX_DEPTH - 1)}
    assert json.loads(to_text(result, max_bytes=MIB)) == result


def test_fields_that_cannot_be_written_are_no_result() -> None:
    with pytest.raises(ResultTooLargeError):
        to_text({"orders": ["\ud800"], "raw_pages": []}, max_bytes=MIB)
