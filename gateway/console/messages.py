"""What the console says, in each of its languages: a catalogue a language, the same keys in all."""

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

LANGUAGES: Final[Mapping[str, str]] = {"en": "English", "ja": "日本語", "zh": "中文"}
"""Tags, and what each language calls itself. The first one is the fallback."""

_FALLBACK: Final = "en"
_MOST_WISHES: Final = 16


def catalogue(language: str) -> Mapping[str, str]:
    """Read a catalogue: keys to sentences, whose names in braces are filled in."""
    texts: dict[str, str] = json.loads(
        files("gateway.console").joinpath("messages", f"{language}.json").read_text("utf-8")
    )
    return texts


def preferred(accept_language: str) -> str:
    """Return which of the languages an `Accept-Language` header asks for first."""
    wishes = []
    for place, part in enumerate(accept_language.split(",")[:_MOST_WISHES]):
        tag, _, parameter = part.partition(";")
        weight = _weight(parameter)
        language = tag.strip().lower().partition("-")[0]
        if language in LANGUAGES and weight > 0:
            wishes.append((-weight, place, language))
    return min(wishes)[2] if wishes else _FALLBACK


def _weight(parameter: str) -> float:
    name, _, value = parameter.strip().partition("=")
    try:
        return float(value) if name == "q" else 1.0
    except ValueError:
        return 0.0
