"""What an intent may be, and that it is told apart value for value (docs/specification.md#submission)."""

import json
from contextlib import suppress
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain import json_text
from gateway.domain.json_text import MAX_DEPTH, JsonTextError, canonical, equal, parse_object

LIMIT = 1_000


def nested(depth: int) -> str:
    """An object of this many levels, itself included."""
    return '{"a":' + "[" * (depth - 1) + "]" * (depth - 1) + "}"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": NaN}', "NaN"),
        ('{"a": Infinity}', "Infinity"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": 1e400}', "beyond the range of a double"),
        ('{"a": -1e400}', "beyond the range of a double"),
        ('{"a": 1' + "0" * 399 + "}", "beyond the range of a double"),
        ('{"a": 1' + "0" * 309 + "}", "beyond the range of a double"),
        ('{"a": 2' + "0" * 308 + "}", "beyond the range of a double"),
        ('{"a": 1, "a": 2}', "twice"),
        ('{"b": {"a": 1, "\\u0061": 2}}', "twice"),
        ('{"a": "\\ud800"}', "lone surrogate"),
        ('{"\\udc00": 1}', "lone surrogate"),
        ('{"a": ["\\ude00\\ud83d"]}', "lone surrogate"),
        ('{"a": "\\u0000"}', "NUL"),
        ('{"a\\u0000": 1}', "NUL"),
        ('{"a": "\0"}', "is not JSON"),
        ("\0{}", "is not JSON"),
        (nested(MAX_DEPTH + 1), "deeper than 64"),
        ('{"a":' * 50_000, "deeper than 64"),
        ("[]", "must be a JSON object"),
        ('"{}"', "must be a JSON object"),
        ("null", "must be a JSON object"),
        ("1", "must be a JSON object"),
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("{} {}", "is not JSON"),
        ("\ufeff{}", "is not JSON"),
        ("{'a': 1}", "is not JSON"),
        ('{"a": 01}', "is not JSON"),
        ('{"a": +1}', "is not JSON"),
        ('{"a": .5}', "is not JSON"),
        ('{"a": 1,}', "is not JSON"),
        ('{"a": \u0661}', "is not JSON"),
        ('{"a": "\n"}', "is not JSON"),
        ('{"a": // x\n 1}', "is not JSON"),
    ],
    ids=lambda value: value[:24],
)
def test_refused(text: str, says: str) -> None:
    with pytest.raises(JsonTextError, match=says):
        parse_object(text, max_bytes=1_000_000)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        ' {"a" : [ 1 ] }\n',
        '{"a": 12345678901234567890}',
        '{"a": -0.0}',
        '{"a": 1e308, "b": 5e-324, "c": 1e-400}',
        '{"a": 1' + "0" * 308 + "}",
        '{"a": "\\ud83d\\ude00"}',
        '{"a": "😀", "名": null}',
        '{"a": "\\\\u0000"}',
        '{"a": {"a": 1}, "b": {"a": 1}}',
        nested(MAX_DEPTH),
        '{"a": "' + "[" * 100 + '"}',
        '{"a": [' + ",".join(["[]"] * 100) + "]}",
    ],
    ids=lambda value: value[:24],
)
def test_accepted(text: str) -> None:
    assert parse_object(text, max_bytes=100_000) == json.loads(text)


def test_the_size_counts_bytes_and_the_limit_is_exact() -> None:
    ascii_text = '{"a":"' + "x" * (LIMIT - 8) + '"}'
    assert len(ascii_text) == LIMIT
    parse_object(ascii_text, max_bytes=LIMIT)
    with pytest.raises(JsonTextError, match="is 1001 bytes, the limit is 1000"):
        parse_object(ascii_text + " ", max_bytes=LIMIT)
    wide = '{"a":"' + "é" * ((LIMIT - 8) // 2) + '"}'
    parse_object(wide, max_bytes=LIMIT)
    with pytest.raises(JsonTextError, match="is 1002 bytes"):
        parse_object(wide.replace("é", "éé", 1), max_bytes=LIMIT)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ('{"a": 1, "b": 2}', '{"b":2,"a":1}', True),
        ('{"a": [1, 2]}', '{"a": [2, 1]}', False),
        ('{"a": 1}', '{"a": 1.0}', False),
        ('{"a": 100.0}', '{"a": 1e2}', True),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": 0}', '{"a": false}', False),
        ('{"a": null}', "{}", False),
        ('{"a": "é"}', '{"a": "\\u00e9"}', True),
        ('{"a": 9007199254740993}', '{"a": 9007199254740992}', False),
        ('{"a": "1"}', '{"a": 1}', False),
        ('{"a": 0.0}', '{"a": -0.0}', False),
        ('{"a": [{"b": 1}, []]}', '{"a": [{"b": 1}, {}]}', False),
        ('{"a": [1]}', '{"a": [1, 2]}', False),
    ],
)
def test_intents_are_compared_as_values(first: str, second: str, *, same: bool) -> None:
    one, other = (parse_object(text, max_bytes=LIMIT) for text in (first, second))
    assert equal(one, other) is same
    assert ("".join(canonical(one)) == "".join(canonical(other))) is same, "as a digest tells it"


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(codec="ascii", exclude_characters="\0")), inner, max_size=5)
    ),
    max_leaves=20,
)
OBJECTS = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")), VALUES, max_size=5
)


@given(OBJECTS, st.booleans())
def test_every_json_object_is_taken_as_the_value_that_it_is(value: dict[str, object], ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    taken = parse_object(text, max_bytes=1_000_000)
    assert json.dumps(taken) == json.dumps(value)
    assert equal(taken, json.loads(json.dumps(value, sort_keys=True)))
    assert "".join(canonical(taken)) == json.dumps(taken, sort_keys=True, separators=(",", ":"))


@given(st.text())
def test_any_text_is_taken_or_refused_and_never_fails_otherwise(text: str) -> None:
    with suppress(JsonTextError):
        assert isinstance(parse_object(text, max_bytes=1_000_000), dict)


@given(st.binary(max_size=40))
def test_any_bytes_inside_an_object_are_taken_or_refused(data: bytes) -> None:
    with suppress(JsonTextError):
        parse_object('{"a": ' + data.decode("latin-1") + "}", max_bytes=1_000_000)


_TEXTS = st.text(st.sampled_from('ab"\\[]{},'), max_size=12)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_TEXTS, inner, max_size=4),
    max_leaves=40,
)


def _values_in(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_values_in, inner))


@given(value=_JSON, length=st.sampled_from([1, 2, 3, 7, 64]), separators=st.sampled_from([(",", ":"), (", ", " : ")]))
def test_values_are_counted_exactly_wherever_a_slice_ends(
    value: object, length: int, separators: tuple[str, str]
) -> None:
    text = json.dumps({"x": value}, separators=separators)
    number = _values_in(value)
    with patch.object(json_text, "_SLICE", length):
        parse_object(text, max_bytes=len(text), max_values=number)
        # A text that is no longer than the limit is not looked at.
        if 1 < number < len(text):
            with pytest.raises(JsonTextError, match=f"more than {number - 1} values"):
                parse_object(text, max_bytes=len(text), max_values=number - 1)
