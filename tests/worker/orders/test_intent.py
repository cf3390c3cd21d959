"""What an intent means, and that anything unclear is refused by the field's name."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from worker.orders.intent import (
    MAX_CHOICES,
    MAX_ITEMS,
    MAX_QUANTITY,
    MAX_TEXT,
    MAX_URL,
    MAX_YEN,
    Intent,
    MalformedIntentError,
    parse_intent,
)
from worker.sites.port import Item
from worker.sites.sandbox.payment import PAYMENT_METHODS

PAGE = (Path(__file__).parents[3] / "docs" / "intent.md").read_text()
URL = "https://item.example/shop/code/"


def parse(value: Any) -> Intent:
    return parse_intent(json.dumps(value))


def test_the_single_item_fields_are_one_item() -> None:
    intent = parse({"item_url": URL, "quantity": 2, "variant_id": "m", "choice": "red", "max_total_yen": 30000})
    assert intent == Intent((Item(URL, 2, "m", ("red",)),), {}, 30000)


def test_items_may_be_objects_and_bare_urls() -> None:
    intent = parse({"items": [URL, {"item_url": URL, "choice": ["a", "b"]}], "options": {"gift": True}, "note": [1]})
    assert intent == Intent((Item(URL), Item(URL, choice=("a", "b"))), {"gift": True}, None)


def test_large_integers_in_options_are_kept() -> None:
    assert parse({"item_url": URL, "options": {"id": 12345678901234567890}}).options == {"id": 12345678901234567890}


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ([], "intent"),
        ("text", "intent"),
        ({}, "items"),
        ({"items": []}, "items"),
        ({"items": URL}, "items"),
        ({"items": None}, "items"),
        ({"items": [URL] * (MAX_ITEMS + 1)}, "items"),
        ({"items": [URL], "item_url": URL}, "item_url"),
        ({"items": [URL], "quantity": 1}, "quantity"),
        ({"quantity": 1}, "item_url"),
        ({"items": [3]}, "items[0]"),
        ({"items": [URL, {}]}, "items[1].item_url"),
        ({"item_url": "ftp://item.example/x"}, "item_url"),
        ({"item_url": "//item.example/x"}, "item_url"),
        ({"item_url": "https:///x"}, "item_url"),
        ({"item_url": "https://item.example:99999/x"}, "item_url"),
        ({"item_url": "https://[::1/x"}, "item_url"),
        ({"item_url": URL + "\n"}, "item_url"),
        ({"item_url": " " + URL}, "item_url"),
        ({"item_url": URL + "x" * 2000}, "item_url"),
        ({"item_url": None}, "item_url"),
        ({"item_url": URL, "quantity": 0}, "quantity"),
        ({"item_url": URL, "quantity": True}, "quantity"),
        ({"item_url": URL, "quantity": 1.0}, "quantity"),
        ({"item_url": URL, "quantity": "1"}, "quantity"),
        ({"item_url": URL, "quantity": None}, "quantity"),
        ({"item_url": URL, "quantity": MAX_QUANTITY + 1}, "quantity"),
        ({"item_url": URL, "variant_id": 5}, "variant_id"),
        ({"item_url": URL, "variant_id": ""}, "variant_id"),
        ({"item_url": URL, "choice": [1]}, "choice[0]"),
        ({"item_url": URL, "choice": {}}, "choice"),
        ({"item_url": URL, "options": []}, "options"),
        ({"item_url": URL, "max_total_yen": 0}, "max_total_yen"),
        ({"item_url": URL, "max_total_yen": True}, "max_total_yen"),
        ({"item_url": URL, "max_total_yen": 3e4}, "max_total_yen"),
        ({"item_url": URL, "max_total_yen": "30000"}, "max_total_yen"),
    ],
)
def test_malformed_intents_are_refused_by_field(value: Any, field: str) -> None:
    with pytest.raises(MalformedIntentError, match=r"^") as refusal:
        parse(value)
    assert str(refusal.value).startswith(f"{field}: ")


@pytest.mark.parametrize("text", ["", "{", '{"item_url": NaN}', "[" * 100_000, '{"a": ' + "9" * 5000 + "}"])
def test_what_is_no_json_is_malformed(text: str) -> None:
    with pytest.raises(MalformedIntentError, match="intent: not valid JSON"):
        parse_intent(text)


TEXT = st.text(alphabet="aé😀\n ", max_size=6)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=10,
)
FIELDS = st.sampled_from(["items", "item_url", "quantity", "variant_id", "choice", "options", "max_total_yen", "note"])


@settings(deadline=None)
@given(st.dictionaries(FIELDS, JSON_VALUES | st.just(URL) | st.just([URL])))
def test_every_json_object_is_an_intent_or_malformed(value: dict[str, Any]) -> None:
    try:
        intent = parse(value)
    except MalformedIntentError:
        return
    assert intent.items
    for item in intent.items:
        assert type(item.quantity) is int
        assert 1 <= item.quantity <= MAX_QUANTITY
        assert item.item_url.startswith(("http://", "https://"))
    assert intent.max_total_yen is None or intent.max_total_yen >= 1
    assert not ("items" in value and {"item_url", "quantity", "variant_id", "choice"} & value.keys())


def test_the_page_about_the_intent_says_what_is_read() -> None:
    first, second = (parse_intent(example) for example in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    assert [(item.quantity, item.variant_id, item.choice) for item in first.items] == [
        (2, None, ()),
        (1, "sand", ("御祝",)),
        (1, None, ()),
    ]
    assert (first.max_total_yen, second.items[0].quantity, second.max_total_yen) == (20000, 1, 3000)
    for limit in (MAX_ITEMS, MAX_QUANTITY, MAX_CHOICES, MAX_TEXT, MAX_URL, MAX_YEN):
        assert f"{limit:,}" in PAGE
    for method in PAYMENT_METHODS:
        assert f"`{method}`" in PAGE
    with pytest.raises(MalformedIntentError) as malformed:
        parse({"items": [{"item_url": URL, "quantity": 0}]})
    assert f"malformed intent: {malformed.value}" in " ".join(PAGE.split())
