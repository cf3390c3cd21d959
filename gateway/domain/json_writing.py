"""Writing JSON in which texts that came from outside stand character for character."""

from dataclasses import dataclass
from json import JSONEncoder
from typing import Any, Final

_ENCODER: Final = JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class JsonText:
    """A JSON text that goes into a document as it is, such as an intent."""

    text: str


def dump(value: Any) -> str:
    """Write JSON. Raises TypeError for a JsonText, ValueError for a number that JSON has not."""
    return _ENCODER.encode(value)


def dump_document(value: Any) -> str:
    """Write JSON in which a JsonText may stand anywhere. Raises as `dump`."""
    if isinstance(value, JsonText):
        return value.text
    if isinstance(value, dict):
        return "{" + ",".join(f"{dump(key)}:{dump_document(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(dump_document, value)) + "]"
    return dump(value)
