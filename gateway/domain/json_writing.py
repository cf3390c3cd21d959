"""Writing JSON in which texts that came from outside stand character for character."""

import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class JsonText:
    """A JSON text that goes into a document as it is, such as an intent."""

    text: str


def dump(value: Any) -> str:
    """Write JSON. A JsonText stands in it character for character."""
    if isinstance(value, JsonText):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(key)}:{dump(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(dump, value)) + "]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
