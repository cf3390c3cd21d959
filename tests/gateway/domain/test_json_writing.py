"""Writing JSON: the library's own for values, and texts that stand in it as they came."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.json_writing import JsonText, dump, dump_document

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_both_write_the_same_where_no_text_stands_in_it(value: object) -> None:
    assert dump(value) == dump_document(value)
    assert json.loads(dump(value)) == value


def test_a_text_stands_character_for_character() -> None:
    text = '{ "n": 1.00, "s": "\\u65e5" }'
    assert (
        dump_document({"intent": JsonText(text), "日": [JsonText("1e0"), None]})
        == f'{{"intent":{text},"日":[1e0,null]}}'
    )


def test_a_text_is_not_taken_for_a_value() -> None:
    with pytest.raises(TypeError):
        dump({"intent": JsonText("{}")})


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_json_has_no_number_for_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        dump_document([number])
